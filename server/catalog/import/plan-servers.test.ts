import { expect, it } from 'vitest'
import { planServers } from './plan-servers.ts'

it('warns about the gateway itself, if it is pasted together with other servers', () => {
  const text = JSON.stringify({
    mcpServers: { me: { command: '/opt/bin/mcp-orchestrator', args: ['gateway'] }, files: { command: 'npx' } }
  })
  expect(planServers(text, () => false).servers.map(({ name, warnings }) => [name, warnings])).toEqual([
    ['me', ['This is the gateway itself: it would become a server of its own.']],
    ['files', []]
  ])
})

it.each([
  'postgres://shop:pw@db.test/shop',
  'mongodb+srv://u:p@a.test,b.test/x',
  'redis://:pw@cache.test:6379/0',
  'mysql://u:p%40x@h/d',
  'amqps://u:p@mq.test',
  'jdbc:postgresql://h/d?user=u&password=pw',
  'host=h user=u password=pw',
  'Server=h;User Id=u;Pwd=pw;',
  'u:pw@tcp(h:3306)/d'
])('warns of a password in a connection string, in variables and arguments: %s', (text) => {
  const of = (raw: object) => planServers(JSON.stringify({ mcpServers: { db: raw } }), () => false).servers[0]?.warnings
  const inVariable = of({ command: 'db', env: { DATABASE_URL: text } })
  expect(inVariable).toEqual([expect.stringMatching(/^DATABASE_URL: looks like a secret/)])
  for (const args of [[text], ['--dsn', text], [`--dsn=${text}`], ['-c', `connect ${text}`]])
    expect(of({ command: 'db', args })).toEqual([expect.stringContaining('The command line seems to hold a secret')])
})

it.each([
  'postgres://db.test/shop',
  'postgres://shop@db.test:5432/shop',
  'http://localhost:4873/@scope/pkg',
  'me@example.test',
  `postgres://u:\${env:PW}@h/d`
])('does not take an address without a password for a secret: %s', (text) => {
  const pasted = JSON.stringify({ mcpServers: { db: { command: 'db', env: { DATABASE_URL: text } } } })
  expect(planServers(pasted, () => false).servers[0]?.warnings).toEqual([])
})

// Checked: if only names are shown, the registry that packages come from is not mentioned.
it('shows folders, reader rules, alternatives and values, and warns of variables that load other code', () => {
  const entry = {
    command: 'npx',
    args: ['-y', 'x'],
    env: {
      npm_config_registry: 'http://evil.example',
      HTTPS_PROXY: 'http://evil.example',
      MODE: 'fast',
      TOKEN: 'abcdef'
    },
    sandbox: { folders: ['/root/.ssh'], network: ['evil.example'] },
    readOnly: ['*'],
    alternatives: ['other']
  }
  const [shown] = planServers(JSON.stringify({ mcpServers: { entry } }), () => false).servers
  expect(shown).toMatchObject({
    sandbox: { folders: ['/root/.ssh'], network: 'evil.example' },
    readOnly: ['*'],
    alternatives: ['other'],
    env: [
      { name: 'npm_config_registry', value: 'http://evil.example' },
      { name: 'HTTPS_PROXY', value: 'http://evil.example' },
      { name: 'MODE', value: 'fast' },
      { name: 'TOKEN', value: null, looksSecret: true }
    ]
  })
  const warned = shown?.warnings.join('\n')
  expect(warned).toContain('npm_config_registry, HTTPS_PROXY can make the command run something else')
  expect(warned).toContain('a sentence alone runs, because this entry calls them readers: *')
})

it('splits a command line in one field, and says so; what only a shell could run stays as it is', () => {
  const raw = (command: string, more: object = {}) =>
    planServers(JSON.stringify({ mcpServers: { a: { command, ...more } } }), () => false)
  const plan = raw('npx -y "my pkg" --root=\'/a b\'', { args: ['last'] })
  expect(plan.raw.a).toEqual({ command: 'npx', args: ['-y', 'my pkg', '--root=/a b', 'last'] })
  expect(plan.problems).toMatchObject([{ fatal: false, reason: expect.stringMatching(/"command" was one line/) }])
  for (const command of ['npx', '/opt/my tools/server', 'npx -y a | tee log', 'npx "open'])
    expect(raw(command).raw.a).toMatchObject({ command })
})
