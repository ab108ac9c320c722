import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findClientServers, readClientFile } from './client-files.ts'

describe('the files of other clients', () => {
  let home = ''
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'clients-'))
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))

  const put = (path: string, content: unknown) => {
    const file = join(home, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return file
  }

  it('have placeholders of their own: some become ours, and servers with others are left out by name', async () => {
    const of = (text: string) => `\${${text}}`
    const env = { A: of('TOKEN'), B: `Bearer ${of('input:my-key')}`, C: of('env:KEPT'), D: '$$' + '{as-it-is}' }
    const file = put('.mcp.json', {
      mcpServers: {
        a: { command: 'a', env },
        b: { command: 'b', args: ['-y', of('DIR')], env: { B: `x-${of('PORT:-80')}` } },
        c: { command: 'c', cwd: of('workspaceFolder') },
        d: { url: `https://example.test/${of('KEY')}` }
      }
    })
    const { servers, problems } = await readClientFile('Claude Code', file)
    expect(servers.map(({ raw }) => raw)).toEqual([
      { command: 'a', env: { ...env, A: of('env:TOKEN'), B: `Bearer ${of('secret:my-key')}` } }
    ])
    const said = [`"b" is left out: it has ${of('DIR')}, ${of('PORT:-80')}`, of('workspaceFolder'), of('KEY')]
    expect(problems).toEqual(said.map((words) => expect.stringContaining(words)))
  })

  it('are found, those for this folder alone among them', async () => {
    put('.config/Claude/claude_desktop_config.json', { mcpServers: { desktop: { command: 'a' } } })
    put('.claude.json', {
      mcpServers: { code: { command: 'b' } },
      projects: {
        '/here': { mcpServers: { project: { command: 'c' } } },
        '/there': { mcpServers: { other: { command: 'd' } } }
      }
    })
    put('.config/Code/User/mcp.json', '{ "servers": { "vs": { "type": "http", "url": "https://vs.test/mcp" } }, }')
    put('.codeium/windsurf/mcp_config.json', { mcpServers: { surf: { serverUrl: 'https://surf.test/mcp' } } })
    const { servers, problems } = await findClientServers(home, '/here')
    expect(servers.map(({ client, name }) => `${client}: ${name}`)).toEqual([
      'Claude Desktop: desktop',
      'Claude Code: code',
      'Claude Code: project',
      'VS Code: vs',
      'Windsurf: surf'
    ])
    expect(problems).toEqual([])
  })

  it('hide nothing by what is wrong in them, and say what it is', async () => {
    const bad = put('.cursor/mcp.json', '{ "mcpServers": {\n "fine": { "command": "a" },\n "odd": { "args": [1] } } }')
    const broken = put('.claude.json', '{ "mcpServers": ')
    put('.codeium/windsurf/mcp_config.json', {})
    const { servers, problems } = await findClientServers(home, '/here')
    expect(servers.map(({ name }) => name)).toEqual(['fine'])
    expect(problems).toEqual([
      `${broken}, line 1: the file ends too early.`,
      `${bad}, line 3: server "odd": needs either "command" (a local server) or "url" (a remote one); this server is left out.`
    ])
  })

  it.each([
    ['/opt/x/bin/mcp-orchestrator', 'gateway'],
    ['npx', '-y', 'mcp-orchestrator@1.2.3', 'gateway', '--expose', 'all']
  ])('do not make the gateway a server of itself: %s %s', async (command, ...args) => {
    const file = put('x.json', { mcpServers: { me: { command, args }, files: { command: 'npx', args: ['gateway'] } } })
    const { servers, problems } = await readClientFile('x', file)
    expect(servers.map(({ name }) => name)).toEqual(['files'])
    expect(problems).toEqual([`${file}: server "me" is this gateway itself; it is left out.`])
  })

  it.each([
    ['no.json', undefined, /no\.json can't be used: there is no such file\.$/],
    ['cut.json', '{', /cut\.json, line 1: /],
    ['list.json', '[]', /needs an object "mcpServers"\.$/]
  ])('are refused with a sentence when one was named and can not be used: %s', async (name, content, sentence) => {
    const file = content === undefined ? join(home, name) : put(name, content)
    await expect(readClientFile('x', file)).rejects.toThrow(sentence)
  })
})
