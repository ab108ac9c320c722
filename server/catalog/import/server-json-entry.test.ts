import { describe, expect, it } from 'vitest'
import { readServerJson } from './server-json.ts'
import { entryOf } from './server-json-entry.ts'

const npm = (more: object = {}, about: object = {}) => ({
  name: 'io.github.someone/weather',
  description: 'Weather of the world',
  version: '1.0.2',
  packages: [
    { registryType: 'npm', identifier: '@some/weather', version: '1.0.2', transport: { type: 'stdio' }, ...more }
  ],
  ...about
})
const plan = (raw: object, given: Record<string, string> = {}, options = {}, taken: string[] = []) => {
  const values = { given: new Map(Object.entries(given)), server: 'weather', isTaken: taken.includes.bind(taken) }
  return entryOf(readServerJson({ ...raw }), values, options)
}

const HOSTILE: [string, object, string][] = [
  [
    'the secret of another server',
    npm({ environmentVariables: [{ name: 'A', value: `\${secret:GITHUB}` }] }),
    `no \${`
  ],
  ['our environment in a default', npm({ environmentVariables: [{ name: 'A', default: `\${env:HOME}` }] }), `no \${`],
  ['a program of its own', npm({ registryType: 'shell', identifier: 'sh' }), 'not supported'],
  ['an option as a package', npm({ identifier: '--registry=https://evil.test' }), 'not the name of a package'],
  ['a version that is an option', npm({ version: '1 --call x' }), 'not exact'],
  ...['1', '1.2', '1.x', '1.2.x', '1.0.0.0', '01.2.3', '1.2.3-', 'latest', '^1.2.3'].map(
    (version): [string, object, string] => [`the npm version ${version}`, npm({ version }), 'not exact']
  ),
  ...['1.x', '1.0-x', '1.0.final', '1!2'].map((version): [string, object, string] => [
    `the pypi version ${version}`,
    npm({ registryType: 'pypi', identifier: 'a', version }),
    'not exact'
  ]),
  ...['1', '1.2', '1.x', '1.2.x'].map((version): [string, object, string] => [
    `the nuget version ${version}`,
    npm({ registryType: 'nuget', identifier: 'A', version }),
    'not exact'
  ]),
  ...['python', 'Python3.12', 'pythonw', 'cpython', 'pypy3'].map((identifier): [string, object, string] => [
    `the interpreter ${identifier}`,
    npm({ registryType: 'pypi', identifier, version: '3.12' }),
    'whatever its arguments say'
  ]),
  ['the interpreter node', npm({ identifier: 'node', version: '20.0.0' }), 'whatever its arguments say'],
  ...[
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'OPENSSL_CONF',
    'CORECLR_PROFILER_PATH',
    'DOTNET_STARTUP_HOOKS',
    'NUGET_PACKAGES',
    'RestoreSources',
    'NETRC',
    'SSLKEYLOGFILE',
    'GLIBC_TUNABLES'
  ].map((name): [string, object, string] => [
    `the variable ${name}`,
    npm({ environmentVariables: [{ name, value: 'x' }] }),
    'run something else'
  ]),
  ['another package registry', npm({ registryBaseUrl: 'https://evil.test' }), 'not the usual place'],
  [
    'options of the program',
    npm({ registryType: 'pypi', identifier: 'a', runtimeArguments: [{ type: 'positional', value: '--from=x' }] }),
    'options of uvx'
  ],
  [
    'code in a variable',
    npm({ environmentVariables: [{ name: 'NODE_OPTIONS', value: '-r /tmp/x' }] }),
    'run something else'
  ],
  [
    'a secret in its command',
    npm({ packageArguments: [{ type: 'named', name: '--key', isSecret: true, isRequired: true }] }),
    'is public'
  ],
  ['hidden characters', npm({ identifier: 'a\u202eb' }), 'visible characters'],
  ['a second line', npm({ packageArguments: [{ type: 'positional', value: 'a\nb' }] }), 'on one line'],
  [
    'an address without encryption',
    { name: 'a.b/c', remotes: [{ type: 'sse', url: 'http://example.test' }] },
    'https://'
  ],
  ['a container image', npm({ registryType: 'oci', identifier: 'mcp/x' }), 'container image'],
  ['a name that is a path', npm({}, { name: '../../x' }), 'must be like'],
  [
    'thousands of arguments',
    npm({ packageArguments: Array(101).fill({ type: 'positional', value: 'a' }) }),
    'at most 100'
  ]
]

describe('a server.json', () => {
  it.each([
    ['npm', '@some/weather', ['npx', '-y', '@some/weather@1.0.2']],
    ['pypi', 'weather-mcp', ['uvx', 'weather-mcp@1.0.2']],
    ['nuget', 'Some.Weather', ['dnx', 'Some.Weather@1.0.2', '--yes', '--']]
  ])('runs a package of %s in its exact version', (registryType, identifier, [command, ...args]) => {
    expect(plan(npm({ registryType, identifier })).raw).toEqual({ command, args, description: 'Weather of the world' })
  })

  it.each([
    ['npm', '1.2.3-beta.1+b5'],
    ['npm', '0.0.1'],
    ['pypi', '2024.1'],
    ['pypi', '1.0rc1.post2.dev3'],
    ['nuget', '1.2.3.4-rc.1']
  ])('of %s may have the exact version %s', (registryType, version) => {
    const { args } = plan(npm({ registryType, identifier: 'weather', version })).raw as { args: string[] }
    expect(args.join(' ')).toContain(`weather@${version}`)
  })

  it('takes fixed arguments, defaults and given values, and names what is missing', () => {
    const raw = npm({
      packageArguments: [
        { type: 'positional', value: 'start' },
        { type: 'named', name: '--units', default: 'metric', choices: ['metric', 'imperial'] },
        {
          type: 'named',
          name: '-r',
          value: 'zone={zone}',
          variables: { zone: { description: 'A zone', choices: ['a'] } }
        },
        { type: 'positional', valueHint: 'folder', description: 'Where to write', isRequired: true },
        { type: 'named', name: '--verbose' }
      ],
      environmentVariables: [
        { name: 'API_KEY', isSecret: true, isRequired: true },
        { name: 'EXTRA_KEY', isSecret: true, description: 'For more.' },
        { name: 'AUTH', value: 'Bearer {token}', variables: { token: { isSecret: true } } },
        { name: 'CITY', isRequired: true },
        { name: 'LOG', default: 'info' }
      ]
    })
    expect(plan(raw).missing).toEqual([
      { name: 'zone', description: 'A zone', choices: ['a'] },
      { name: 'folder', description: 'Where to write', choices: [] },
      { name: 'CITY', choices: [] }
    ])
    const entry = plan(raw, { zone: 'a', folder: '/tmp/w', CITY: 'Bern', '--units': 'imperial' })
    expect(entry).toMatchObject({
      raw: {
        args: ['-y', '@some/weather@1.0.2', 'start', '--units=imperial', '-r', 'zone=a', '/tmp/w'],
        env: {
          API_KEY: `\${secret:WEATHER_API_KEY}`,
          AUTH: `Bearer \${secret:WEATHER_TOKEN}`,
          CITY: 'Bern',
          LOG: 'info'
        }
      },
      notes: ['"EXTRA_KEY" can be set (For more): give it with --set EXTRA_KEY=VALUE'],
      missing: []
    })
    expect(() => plan(raw, { zone: 'b' })).toThrow('must be one of a')
  })

  it('reaches an address if there is no package, or if it is preferred', () => {
    const remotes = [
      { type: 'sse', url: 'https://example.test/sse' },
      {
        type: 'streamable-http',
        url: 'https://{tenant}.example.test/mcp',
        variables: { tenant: { description: 'Your tenant' } },
        headers: [{ name: 'X-Key', isSecret: true, isRequired: true }]
      }
    ]
    const raw = npm({}, { remotes })
    expect(plan(raw).raw).toMatchObject({ command: 'npx' })
    expect(plan(raw, {}, { remote: true }).missing).toMatchObject([{ name: 'tenant' }])
    expect(plan(raw, { tenant: 'me' }, { remote: true }).raw).toEqual({
      url: 'https://me.example.test/mcp',
      headers: { 'X-Key': `\${secret:WEATHER_X_KEY}` },
      description: 'Weather of the world'
    })
    expect(plan({ ...raw, packages: [], remotes: remotes.slice(0, 1) }).raw).toMatchObject({ type: 'sse' })
  })

  // Checked: if values are taken as they are, the first two entries refer to a secret and to a variable of this machine.
  it.each(HOSTILE)('can not have %s', (_, raw, problem) => {
    expect(() => plan(raw)).toThrow(problem)
  })

  // Checked: if only the server's name is part of the secret's name, the entry refers to the secret that is there.
  it('gets no secret that is there already, whatever it calls itself and its variables', () => {
    const raw = npm({
      environmentVariables: [
        { name: 'API_KEY', isSecret: true, isRequired: true },
        { name: 'AUTH', value: 'Bearer {token}', variables: { token: { isSecret: true } } }
      ]
    })
    const { raw: entry, notes } = plan(raw, {}, {}, ['WEATHER_API_KEY', 'WEATHER_API_KEY_2', 'WEATHER_TOKEN'])
    expect(entry.env).toEqual({
      API_KEY: `\${secret:WEATHER_API_KEY_3}`,
      AUTH: `Bearer \${secret:WEATHER_TOKEN_2}`
    })
    expect(notes).toContain('"API_KEY" becomes the secret WEATHER_API_KEY_3, because WEATHER_API_KEY is there already')
  })

  it('of npm loses its options for npx', () => {
    const { raw, notes } = plan(npm({ runtimeArguments: [{ type: 'positional', value: '--call=evil' }] }))
    expect(raw.args).toEqual(['-y', '@some/weather@1.0.2'])
    expect(notes).toContain('its options for npx are not taken over')
  })
})
