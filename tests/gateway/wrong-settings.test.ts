import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { processesWith, spawnGateway, startGateway } from '../support/gateway-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

interface Place {
  dir: string
  config: string
  data: string
}

function place(registry: unknown): Place {
  const dir = temporaryFolder()
  const config = join(dir, 'mcp.json')
  writeFileSync(config, JSON.stringify(registry, null, 1))
  return { dir, config, data: join(dir, 'data') }
}

async function run({ config, data }: Place, args: string[], env: Record<string, string> = {}) {
  const command = spawnGateway([...args, '--config', config], { DATA_DIR: data, ...env })
  let out = ''
  let err = ''
  command.stdout.on('data', (chunk) => {
    out += chunk
  })
  command.stderr.on('data', (chunk) => {
    err += chunk
  })
  command.stdin.end()
  return { code: await new Promise((done) => command.once('close', done)), out, err }
}

function credentials({ dir }: Place, text: string, mode: number): Record<string, string> {
  const file = join(dir, 'credentials')
  writeFileSync(file, text, { mode })
  return { CREDENTIALS_FILE: file }
}

describe('what is set wrongly', { timeout: 60_000 }, () => {
  it.each([
    [
      'that others can read',
      'KEY=hunter2',
      0o644,
      /Others on this machine can read the credentials file .*: run chmod 600/
    ],
    ['that is no JSON', '{"KEY": "hunter2"', 0o600, /The credentials file .* can't be used: it is no valid JSON\./],
    ['with odd owners', '{"owners": {"a": "hunter2"}}', 0o600, /"owners" must be an object with an object of texts/]
  ])('stops the gateway before it starts anything: a credentials file %s', async (_what, text, mode, sentence) => {
    const word = `wrong-${crypto.randomUUID()}`
    const at = place({ mcpServers: { a: child('steady', [word]) } })
    const { code, out, err } = await run(at, ['gateway'], credentials(at, text, mode))
    expect([code === 0, out, err.trim().split('\n').length]).toEqual([false, '', 1])
    expect(err).toMatch(sentence)
    expect(err).not.toContain('hunter2')
    expect([existsSync(at.data), processesWith(word)]).toEqual([false, []])
  })

  it('stops the gateway: a credentials file that is not there', async () => {
    const at = place({ mcpServers: {} })
    const { code, err } = await run(at, ['gateway'], { CREDENTIALS_FILE: join(at.dir, 'nothing') })
    expect([code === 0, err]).toEqual([
      false,
      expect.stringMatching(/^mcp-orchestrator: The credentials file .*nothing/)
    ])
  })

  it('stops a gateway that is its own server before it goes on for ever', async () => {
    const refused = await run(place({ mcpServers: {} }), ['gateway'], { MCP_ORCHESTRATOR_DEPTH: '2' })
    expect([refused.code, refused.out, refused.err.trim().split('\n').length]).toEqual([1, '', 1])
    const main = resolve(import.meta.dirname, '../../server/gateway-main.ts')
    const gateway = await startGateway(({ dir }) => ({
      self: { command: process.execPath, args: [main, 'gateway', '--config', join(dir, 'mcp.json'), '--data-dir', dir] }
    }))
    try {
      const inner = { server: 'self', tool: 'execute', params: { server: 'self', tool: 'execute', params: {} } }
      const answer = await gateway.call('execute', inner)
      expect(JSON.stringify(answer)).toContain('with the same mcp.json. Remove the gateway from its own mcp.json')
    } finally {
      await gateway.end()
    }
  })

  it('fails to verify an audit log that does not exist', async () => {
    const at = place({ mcpServers: {} })
    const { code, out, err } = await run(at, ['audit', 'verify', '--json'])
    expect([code, out, err]).toEqual([1, '', expect.stringContaining(`no audit log in ${at.data}`)])
  })

  it.each([
    [
      'an unknown key',
      child('steady', [], { colour: 'red' }),
      /mcp\.json, line \d+: server "a": unknown key "colour"\./
    ],
    ['a missing command', { command: 'no-such-command' }, /FAILS a: .*there is no command "no-such-command"/],
    ['a whole command line', { command: 'npx -y pkg' }, /FAILS a: .*"npx -y pkg"; put what follows "npx" into "args"/],
    ['a missing folder', child('steady', [], { cwd: '/no/such/folder' }), /FAILS a: .*its folder \/no\/such\/folder/],
    ['a missing secret', child('steady', [], { env: { T: `\${secret:NOPE}` } }), /FAILS a: .*needs \${secret:NOPE}/],
    [
      'a secret in a command line',
      { command: 'x', args: [`\${secret:NOPE}`] },
      /line \d+: server "a": "args\.0" a command line is public/
    ],
    ['a wrong type', { command: 'x', args: 'y' }, /line \d+: server "a": "args" must be a list/]
  ])('is told by servers test, with its place and an exit code: %s', async (_what, entry, sentence) => {
    const { code, out, err } = await run(place({ mcpServers: { a: entry } }), ['servers', 'test'])
    expect(code).toBe(1)
    expect(out + err).toMatch(sentence)
  })
})
