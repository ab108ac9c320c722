import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { chooseNames } from './choose-names.ts'
import { findClientServers, readClientFile } from './client-files.ts'

describe('the files of other clients', () => {
  let home = ''
  beforeEach(() => {
    home = temporaryFolder()
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))

  const place = (environment = {}) => ({ home, folder: '/here', environment })
  const of = (text: string) => `\${${text}}`
  const put = (path: string, content: unknown) => {
    const file = join(home, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return file
  }

  it('have their own placeholders: some are translated, and servers with others are left out and named', async () => {
    const env = { A: of('TOKEN'), B: `Bearer ${of('input:my-key')}`, C: of('env:KEPT'), D: '$$' + '{as-it-is}' }
    const file = put('.mcp.json', {
      mcpServers: {
        a: { command: 'a', env },
        b: { command: 'b', args: ['-y', of('DIR')], env: { B: 'x' } },
        c: { command: 'c', cwd: of('config:x') },
        d: { url: `https://example.test/${of('KEY')}` }
      }
    })
    const { servers, problems } = await readClientFile(file, place({ PORT: '81' }))
    expect(servers.map(({ raw }) => raw)).toEqual([
      { command: 'a', env: { ...env, A: of('env:TOKEN'), B: `Bearer ${of('secret:my-key')}` }, cwd: home }
    ])
    const said = [`"b": has ${of('DIR')}, which nothing fills in here`, of('config:x'), of('KEY')]
    expect(problems).toEqual(said.map((words) => expect.stringContaining(words)))
  })

  it('are found, including those for this folder only', async () => {
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
    const { servers, problems } = await findClientServers(place())
    expect(servers.map(({ client, name }) => `${client}: ${name}`)).toEqual([
      'Claude Desktop: desktop',
      'Claude Code: code',
      'Claude Code: project',
      'Claude Code: other',
      'VS Code: vs',
      'Windsurf: surf'
    ])
    expect(problems).toEqual([])
  })

  it('report what is invalid, and still yield everything else', async () => {
    const bad = put('.cursor/mcp.json', '{ "mcpServers": {\n "fine": { "command": "a" },\n "odd": { "args": [1] } } }')
    const broken = put('.claude.json', '{ "mcpServers": ')
    put('.codeium/windsurf/mcp_config.json', {})
    const { servers, problems } = await findClientServers(place())
    expect(servers.map(({ name }) => name)).toEqual(['fine'])
    expect(problems).toEqual([
      `${broken}, line 1, column 17: the file ends too early.`,
      `${bad}, line 3: server "odd": needs either "command" (a local server) or "url" (a remote one); this server is left out.`
    ])
  })

  it.each([
    ['/opt/x/bin/mcp-orchestrator', 'gateway'],
    ['npx', '-y', 'mcp-orchestrator@1.2.3', 'gateway', '--expose', 'all']
  ])('do not make the gateway a server of itself: %s %s', async (command, ...args) => {
    const file = put('x.json', { mcpServers: { me: { command, args }, files: { command: 'npx', args: ['gateway'] } } })
    const { servers, problems } = await readClientFile(file, place())
    expect(servers.map(({ name }) => name)).toEqual(['files'])
    expect(problems).toEqual([`${file}: server "me" is this gateway itself; it is left out.`])
  })

  it.each([
    ['no.json', undefined, /no\.json can't be used: there is no such file\.$/],
    ['cut.json', '{', /cut\.json, line 1, column 2: /],
    ['list.json', '[]', /needs an object "mcpServers"\.$/]
  ])('are refused with a sentence when one was named and can not be used: %s', async (name, content, sentence) => {
    const file = content === undefined ? join(home, name) : put(name, content)
    await expect(readClientFile(file, place())).rejects.toThrow(sentence)
  })

  it('bridge to remote servers with mcp-remote: those with headers become remote servers', async () => {
    const bridge = (...args: string[]) => ({ command: 'npx', args: ['-y', 'mcp-remote@latest', ...args] })
    const file = put('claude_desktop_config.json', {
      mcpServers: {
        literal: {
          ...bridge('https://a.test/mcp', '--header', `Authorization:${of('AUTH')}`),
          env: { AUTH: 'Bearer abc', NODE_OPTIONS: '--x' }
        },
        asked: bridge('https://b.test/sse', '3334', '--header', `X-Key: ${of('KEY')}`, '--allow-http'),
        plain: bridge('https://c.test/mcp'),
        odd: bridge('https://d.test/mcp', '--header', `A:${of('B')}`, '--static-oauth-client-info', '{}')
      }
    })
    const { servers, problems } = await readClientFile(file, place())
    expect(servers.map(({ raw }) => raw)).toEqual([
      { url: 'https://a.test/mcp', headers: { Authorization: 'Bearer abc' }, type: 'http' },
      { url: 'https://b.test/sse', headers: { 'X-Key': of('env:KEY') }, type: 'sse' },
      bridge('https://c.test/mcp')
    ])
    expect(servers[0]?.notes.join()).toMatch(/mcp-remote is not needed.*"env" \(NODE_OPTIONS\) is not taken over/)
    expect(problems).toEqual([expect.stringContaining(`"odd": has ${of('B')}`)])
  })

  it('name folders and defaults with placeholders, which are replaced by their values here', async () => {
    const file = put('w/.vscode/mcp.json', {
      servers: {
        folders: {
          command: `${of('userHome')}/bin/x`,
          args: [of('workspaceFolder'), of('env:HOME')],
          cwd: of('CLAUDE_PROJECT_DIR')
        },
        usual: { url: `${of('API_BASE:-http://a.test')}/mcp`, headers: { A: of('SET:-1'), B: of('UNSET:-2') } },
        set: { url: `${of('SET:-http://a.test')}/mcp` },
        nested: { command: 'x', env: { A: of(`A:-${of('B')}`) } },
        shell: { command: 'sh', args: ['-c', `echo ${of('X:-1')}`] }
      }
    })
    const { servers, problems } = await readClientFile(file, place({ SET: 'secret-value' }))
    expect(servers.map(({ raw }) => raw)).toEqual([
      { command: `${home}/bin/x`, args: [`${home}/w`, home], cwd: `${home}/w` },
      { url: 'http://a.test/mcp', headers: { A: of('env:SET'), B: '2' } },
      { command: 'sh', args: ['-c', `echo ${of('X:-1')}`], cwd: `${home}/w` }
    ])
    expect(servers[1]?.notes.join()).toMatch(
      /API_BASE:-.* is written as its default "http:\/\/a.test", because API_BASE is not set/
    )
    expect(problems).toEqual([
      expect.stringContaining(`"set": has ${of('SET:-http://a.test')}`),
      expect.stringContaining(`"nested": has ${of(`A:-${of('B')}`)}`)
    ])
    const own = await readClientFile(
      put('.cursor/mcp.json', { mcpServers: { a: { command: of('workspaceFolder') } } }),
      place()
    )
    expect(own.problems).toEqual([expect.stringContaining(of('workspaceFolder'))])
  })

  it('have their own fields: each is translated, or named', async () => {
    const envFile = put('w/.env', "TOKEN=hidden\nKEPT='x'\n")
    const read = async (path: string, content: unknown) => {
      const { servers, problems } = await readClientFile(put(path, content), place())
      expect(problems).toEqual([])
      return servers.map(({ raw, notes }) => ({ raw, notes: notes.join('; ') }))
    }
    const code = { command: 'x', env: { KEPT: 'y' }, envFile: `${of('workspaceFolder')}/.env`, dev: { watch: 'src' } }
    expect(
      await read('w/.vscode/mcp.json', {
        inputs: [],
        servers: { code, gone: { command: 'x', envFile: '/no/.env' }, endless: { command: 'x', envFile: '/dev/zero' } }
      })
    ).toEqual([
      {
        raw: { command: 'x', env: { TOKEN: of('secret:TOKEN'), KEPT: 'y' }, cwd: `${home}/w` },
        notes: `"envFile" is not read here: store the secret TOKEN with its value from ${envFile}; "dev" is not taken over: it means nothing here; it is started in ${home}/w, as its client does`
      },
      {
        raw: { command: 'x', cwd: `${home}/w` },
        notes: expect.stringMatching(/^"envFile" is not taken over: \/no\/.env is not there/)
      },
      {
        raw: { command: 'x', cwd: `${home}/w` },
        notes: expect.stringContaining("/dev/zero can't be read (it is not a regular file)")
      }
    ])
    const py = { command: 'py', cwd: 'rel', env: { K: '$KEY' } }
    const gemini = {
      httpUrl: 'https://g.test/mcp',
      timeout: 90_000,
      trust: true,
      excludeTools: ['rm'],
      env: { A: 'b' }
    }
    expect(
      await read('.gemini/settings.json', {
        mcp: { excluded: ['old'] },
        mcpServers: { py, gemini, old: { url: 'https://o.test/sse' } }
      })
    ).toEqual([
      {
        raw: { command: 'py', cwd: 'rel', env: { K: of('env:KEY') } },
        notes: expect.stringContaining('"cwd" is relative')
      },
      {
        raw: { url: 'https://g.test/mcp', timeoutMs: { call: 90_000 }, approval: { rm: 'deny' } },
        notes: expect.stringMatching(
          /^rm may not be called.*"trust" is not taken over: .*"env" is not taken over: a remote/
        )
      },
      { raw: { url: 'https://o.test/sse', type: 'sse', enabled: false }, notes: '' }
    ])
    expect(
      await read('cline_mcp_settings.json', {
        mcpServers: { c: { command: 'c', disabled: true, autoApprove: ['a'], timeout: 60 } }
      })
    ).toEqual([
      {
        raw: { command: 'c', disabled: true, timeoutMs: { call: 60_000 } },
        notes: expect.stringMatching(/^"autoApprove" is not taken over/)
      }
    ])
    const zed = { command: { path: 'z', args: ['a'], env: { A: 'b' } }, settings: {} }
    expect(
      await read('.config/zed/settings.json', {
        context_servers: { zed, on: { source: 'custom', command: 'y', enabled: false } }
      })
    ).toEqual([
      { raw: { command: 'z', args: ['a'], env: { A: 'b' } }, notes: '' },
      { raw: { command: 'y', enabled: false }, notes: '' }
    ])
    expect(await read('other.json', { mcpServers: { off: { command: 'a', isActive: false, tools: ['x'] } } })).toEqual([
      {
        raw: { command: 'a', disabled: true, approval: { '*': 'deny', x: 'ask' } },
        notes: expect.stringContaining('only x may be called')
      }
    ])
  })

  it('of Claude Code have servers of single projects, and servers that are switched off there', async () => {
    const code = { command: './c' }
    put('.claude.json', {
      projects: {
        '/p/one': { mcpServers: { db: code, off: { command: 'node', args: ['o.js'] } }, disabledMcpServers: ['off'] },
        '/p/two': { mcpServers: { db: code } },
        [home]: { disabledMcpjsonServers: ['shared'] }
      }
    })
    put('.mcp.json', { mcpServers: { shared: { command: 's' } } })
    const { servers } = await findClientServers({ ...place(), folder: home })
    const { fresh } = chooseNames(servers, new Map())
    expect(fresh.map(({ name, project, raw }) => ({ name, project, ...raw }))).toEqual([
      { name: 'db', project: '/p/one', command: './c', cwd: '/p/one' },
      // In another folder, it would run another "o.js".
      { name: 'off', project: '/p/one', command: 'node', args: ['o.js'], cwd: '/p/one', enabled: false },
      { name: 'db-two', project: '/p/two', command: './c', cwd: '/p/two' },
      { name: 'shared', project: undefined, command: 's', cwd: home, enabled: false }
    ])
    expect(fresh[2]?.notes.join()).toContain('it is called "db-two" here')
  })

  it('are left out, and others are not, where the name with the project in it can not be used', async () => {
    const of = (command: string) => ({ mcpServers: { mcp: { command }, other: { command: 'o' } } })
    put('.claude.json', { projects: { '/p/one': of('./a'), '/p/orchestrator': of('./b') } })
    const { servers } = await findClientServers(place())
    const { fresh, problems } = chooseNames(servers, new Map())
    expect(fresh.map(({ name, project }) => [name, project])).toEqual([
      ['mcp', '/p/one'],
      ['other', '/p/one'],
      ['other-orchestrator', '/p/orchestrator']
    ])
    expect(problems).toEqual([expect.stringMatching(/"mcp" is left out: as "mcp-orchestrator", this name is kept/)])
  })

  it.each(['config.toml', 'librechat.yaml'])(
    'are refused by their format where only JSON can be read: %s',
    async (name) => {
      const file = put(name, 'mcp_servers: mcpServers:')
      await expect(readClientFile(file, place())).rejects.toThrow(
        / and only JSON can be imported: add each of its servers/
      )
    }
  )
})
