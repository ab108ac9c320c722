import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeProblem, diffRegistries, loadRegistry, readRegistry } from './registry.ts'

const read = (mcpServers: Record<string, unknown>) => readRegistry(JSON.stringify({ mcpServers }), 'mcp.json')

describe('the registry', () => {
  // Checked: if only capital letters and Unicode variants count, those with accents, dashes and other scripts are there.
  it.each([
    ['github', 'GitHub'],
    ['github', 'g\u0456thub'],
    ['bank', 'ｂank'],
    ['café', 'cafe'],
    ['my-files', 'my\u2011files']
  ])('leaves out a server whose name looks like that of an earlier one: %s, %s', (name, other) => {
    const { servers, problems } = read({ [name]: { command: 'a' }, [other]: { command: 'b' } })
    expect([...servers.keys()]).toEqual([name])
    expect(problems).toMatchObject([{ server: other, fatal: true, reason: expect.stringContaining(`"${name}"`) }])
  })

  it.each([
    ['mail', 'mall'],
    ['db', 'db2'],
    ['база', 'вода']
  ])('keeps two servers whose names differ: %s, %s', (name, other) => {
    expect(read({ [name]: { command: 'a' }, [other]: { command: 'b' } }).problems).toEqual([])
  })

  it("accepts a client's servers as pasted", () => {
    const { servers, problems } = readRegistry(
      `{
        // from a client's file
        "theme": "dark",
        "mcpServers": {
          "files": { "command": "npx", "args": ["-y", "server-filesystem", "/tmp"], "env": { "DEBUG": 1 } },
          "web": { "type": "http", "url": "https://example.test/mcp", "headers": { "Authorization": "Bearer x" } },
          "old": { "url": "http://localhost:1/sse", "type": "sse", "disabled": true },
        }
      }`,
      'mcp.json'
    )
    expect(problems).toEqual([])
    expect(servers.get('files')).toMatchObject({
      kind: 'local',
      command: 'npx',
      env: { DEBUG: '1' },
      enabled: true,
      line: 5
    })
    expect(servers.get('web')).toMatchObject({ kind: 'remote', url: 'https://example.test/mcp', sse: false })
    expect(servers.get('old')).toMatchObject({ kind: 'remote', sse: true, enabled: false })
  })

  it.each([
    ['workspace'],
    ['mcp-orchestrator'],
    ['mcp-orchestrator-code'],
    ['Workspace '],
    ['ＭＣＰ-Orchestrator'],
    ['work\u200bspace'],
    ['github\u202e'],
    ['w\u043erkspace'],
    ['mcp\u2010orchestrator'],
    ['tabs\u0009']
  ])('leaves out a server whose name is one of ours, or looks like another: %j', (name) => {
    const { servers, problems } = read({ [name]: { command: 'x' }, other: { command: 'y' } })
    expect([...servers.keys()]).toEqual(['other'])
    expect(problems).toMatchObject([{ server: name, fatal: true }])
  })

  it.each(['io.example/crm', 'acme db', '⚙️ tools', 'सर्\u200dवर'])('takes a name as people write it: %j', (name) => {
    expect(read({ [name]: { command: 'x' } }).problems).toEqual([])
  })

  it('accepts our own keys', () => {
    const { servers, problems } = read({
      a: {
        command: 'a',
        description: 'files',
        keywords: ['disk'],
        examples: ['read a file'],
        sandbox: { image: 'node', network: ['example.test'], memoryMb: 64, cpus: 0.5 },
        timeoutMs: { call: 5 },
        idleSeconds: 1.5,
        instances: 2,
        alternatives: ['b'],
        approval: { 'write*': 'ask' },
        readOnly: ['get_*']
      },
      b: { command: 'b', timeoutMs: 7 }
    })
    expect(problems).toEqual([])
    expect(servers.get('a')).toMatchObject({
      timeouts: { startMs: 30_000, listMs: 10_000, callMs: 5 },
      idleMs: 1500,
      approval: { 'write*': 'ask' },
      readOnly: ['get_*'],
      sandbox: { network: ['example.test'] }
    })
    expect(servers.get('b')?.timeouts).toEqual({ startMs: 7, listMs: 7, callMs: 7 })
  })

  it('reports a broken entry with its line and reason, and keeps the others', () => {
    const text = `{ "mcpServers": {
      "good": { "command": "x" },
      "none": {},
      "both": { "command": "x", "url": "http://y" },
      "args": { "command": "x",
        "args": "not a list" },
      "odd": { "command": "x", "colour": "red" },
      "secret": { "command": "x", "args": ["--token", "\${secret:T}"] },
      "proto": { "url": "ftp://x" },
      "login": { "url": "https://bob:hunter2@x.test/mcp" },
      "policy": { "command": "x", "approval": { "*": "maybe" } },
      "__proto__": { "command": "x" }
    } }`
    const { servers, problems } = readRegistry(text, 'mcp.json')
    expect([...servers.keys()]).toEqual(['good', 'odd', '__proto__'])
    expect(problems.map((problem) => describeProblem('mcp.json', problem))).toEqual([
      'mcp.json, line 3: server "none": needs either "command" (a local server) or "url" (a remote one); this server is left out.',
      'mcp.json, line 4: server "both": needs either "command" (a local server) or "url" (a remote one); this server is left out.',
      'mcp.json, line 6: server "args": "args" must be a list of texts; this server is left out.',
      'mcp.json, line 7: server "odd": unknown key "colour".',
      'mcp.json, line 8: server "secret": "args.1" a command line is public: fill placeholders in "env" instead; this server is left out.',
      'mcp.json, line 9: server "proto": "url" must begin with http:// or https://; this server is left out.',
      `mcp.json, line 10: server "login": "url" must hold no user or password: put it into an "Authorization" header with \${secret:NAME}; this server is left out.`,
      'mcp.json, line 11: server "policy": "approval.*" must be "allow", "ask" or "deny"; this server is left out.'
    ])
  })

  // Checked: if duplicates are not checked, there is no error.
  it.each([
    ['', /line 1, column 1: the file ends too early/],
    ['{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', /line 1, column 40: "a" occurs twice/],
    ['{\n\n"mcpServers": [1,]\n}', /line 1: it needs an object "mcpServers"/],
    ['{"mcpServers": {\n"a": "unfinished\n}}', /line 2, column 6: a text does not end/],
    ['{"mcpServers": {}} {}', /line 1, column 20: something follows/],
    [`${'['.repeat(100)}`, /more than 64 levels/]
  ])('says where %j is malformed', (text, sentence) => {
    expect(() => readRegistry(text, 'mcp.json')).toThrow(sentence)
  })

  it('accepts any text, or fails with its own error', () => {
    const words = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ':',
        ',',
        '"mcpServers"',
        '"command"',
        '"url"',
        '"env"',
        '"sandbox"',
        '"approval"',
        '"x"'
      ],
      ...['1', 'null', '-', '//', '/*', '*/', '\n', '\\', '"', '"__proto__"', `"\${secret:A}"`, '\u0000', '1e999']
    )
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(words).map((list) => list.join(''))
    )
    fc.assert(
      fc.property(text, (each) => {
        expect(() => readRegistry(each, 'f')).toThrow(expect.objectContaining({ code: 'registry_malformed' }))
      }),
      { numRuns: 300 }
    )
  })

  it('turns any entry into a server or a problem', () => {
    const known = ['command', 'args', 'env', 'url', 'headers', 'sandbox', 'timeoutMs', 'approval', 'instances', 'cwd']
    const name = fc.oneof(fc.constantFrom('__proto__', 'constructor', 'toString', ''), fc.string())
    const entry = fc.dictionary(fc.constantFrom(...known, '__proto__', 'enabled'), fc.jsonValue())
    fc.assert(
      fc.property(fc.dictionary(name, fc.oneof(entry, fc.jsonValue())), (servers) => {
        const named = Object.entries(servers).map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
        const { servers: read, problems } = readRegistry(`{"mcpServers":{${named.join()}}}`, 'f')
        const broken = problems.filter(({ fatal }) => fatal).map(({ server }) => server)
        expect([...read.keys(), ...broken].sort()).toEqual(Object.keys(servers).sort())
        expect('command' in {}).toBe(false)
      }),
      { numRuns: 300 }
    )
  })

  // Checked: with a search through all names for each, this did not end within 170 s.
  it('is quick on a file that was made to be slow', () => {
    const many = Array.from({ length: 200_000 }, (_, at) => `"${at}":1`).join()
    expect(() => readRegistry(`{"mcpServers":{${many}}}`, 'f')).toThrow(/more than 1000 servers/)
  })

  it('treats a missing file as empty only with `optional`', async () => {
    expect((await loadRegistry('/nowhere/mcp.json', { optional: true })).servers.size).toBe(0)
    await expect(loadRegistry('/nowhere/mcp.json', { optional: false })).rejects.toThrow(/there is no such file/)
  })

  it('distinguishes a change of the process from a change of the descriptions', () => {
    const before = read({ a: { command: 'a' }, b: { command: 'b' }, c: { command: 'c' }, d: { command: 'd' } })
    const after = read({
      e: { command: 'e' },
      a: { command: 'a' },
      b: { command: 'b', env: { X: '1' } },
      c: { command: 'c', description: 'new' }
    })
    const { added, removed, changed, metadataChanged } = diffRegistries(before, after)
    const names = [added, removed, changed, metadataChanged].map((entries) => entries.map(({ name }) => name))
    expect(names).toEqual([['e'], ['d'], ['b'], ['c']])
  })
})
