import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { type GatewayProcess, spawnGateway, startGateway } from '../support/gateway-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})

const placeholder = (kind: string, name: string) => `\${${kind}:${name}}`
const secrets = {
  A: 'hush-a-1e6b',
  B: 'hush-b-93c2',
  OUT: 'hush-out-77d0',
  GATEWAY: 'hush-gateway-5a1f',
  LOGIN: 'hush-login-0c4d'
}
const isHidden = (text: string) => Object.values(secrets).filter((secret) => text.includes(secret))

async function open(args: string[] = []) {
  const dir = temporaryFolder()
  const [credentials, data] = [join(dir, 'credentials.json'), join(dir, 'data')]
  writeFileSync(credentials, JSON.stringify({ A: secrets.A, B: secrets.B }))
  chmodSync(credentials, 0o600)
  const login = join(data, 'logins', 'x.json')
  mkdirSync(join(data, 'logins'), { recursive: true, mode: 0o700 })
  writeFileSync(login, secrets.LOGIN, { mode: 0o600 })
  const env = { CREDENTIALS_FILE: credentials, DATA_DIR: data, FROM_OUTSIDE: secrets.OUT, OTHER_KEY: secrets.GATEWAY }
  const servers = {
    a: child('spy', [], { env: { TOKEN: placeholder('secret', 'A'), MORE: placeholder('secret', 'FROM_OUTSIDE') } }),
    b: child('spy', [], { env: { TOKEN: placeholder('secret', 'B') } })
  }
  const gateway = await startGateway(servers, { args, env: { ...env, LOG_LEVEL: 'debug' } })
  running.push(gateway)
  const call = async (server: string, tool: string, params: Record<string, unknown> = {}) =>
    textOf(await gateway.call('execute', { server, tool, params }))
  const command = async (...args: string[]) => {
    const run = spawnGateway(['servers', ...args, '--config', gateway.config, '--json'], env)
    run.stdin.end()
    let out = ''
    for (const stream of [run.stdout, run.stderr]) {
      stream.on('data', (chunk) => {
        out += chunk
      })
    }
    await new Promise((done) => run.once('close', done))
    return out
  }
  return { gateway, call, command, credentials, login, data }
}

describe('secrets', () => {
  // Checked: without namespaces, the other server's environment can be read.
  it('of a sibling or the gateway can not be read by a child', async () => {
    const { gateway, call, credentials, login } = await open()
    await call('b', 'look')
    const text = await call('a', 'look', { files: [credentials, login, gateway.config] })
    const { seen, read, env, home } = JSON.parse(text)
    const refused = { environ: 'refused: EACCES', memory: 'refused: EACCES', stdout: 'refused: EACCES' }
    // It does not even see them: all that it sees is the first process of its own PID namespace.
    expect(seen).toMatchObject([{ pid: 1, ...refused }])
    expect(isHidden(text)).toEqual([])
    expect(seen.map(({ environ }: { environ: string }) => environ).join('')).not.toContain('MCP_ORCHESTRATOR_CHILD')
    // Our files are covered, and the user's own are not.
    expect(read).toEqual(Array(3).fill(expect.stringMatching(/refused/)))
    expect(statSync(home).isDirectory()).toBe(true)
    expect(env.sort()).toEqual([
      'HOME',
      'MCP_ORCHESTRATOR_CHILD',
      'MCP_ORCHESTRATOR_DEPTH',
      'MORE',
      'PATH',
      'PWD',
      'TMPDIR',
      'TOKEN'
    ])
  })

  // Checked: if nothing is redacted, the secret is in the answer.
  it('appear in no command line, log, error, answer or file of ours', async () => {
    const { gateway, call, command, credentials, login, data } = await open()
    const said: string[] = []
    for (const tool of ['complain', 'refuse', 'crash', 'look']) {
      const answer = await call('a', tool)
      said.push(answer, await call('b', tool))
      if (tool === 'refuse') expect(answer).toBe('"a" refused refuse: no entry with [secret]')
    }
    const lines = readdirSync('/proc').flatMap((pid) => {
      try {
        return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, 'latin1')] : []
      } catch {
        return []
      }
    })
    expect(lines.join('\n')).toContain('spy.ts')
    expect(isHidden(lines.join('\n'))).toEqual([])
    said.push(JSON.stringify(await gateway.call('list_capabilities', {})))
    said.push(JSON.stringify(await gateway.call('find_tool', { query: 'look' })))
    await gateway.end()
    for (const words of [['list'], ['test'], ['health'], ['logs', 'a']]) said.push(await command(...words))
    expect(said.join('')).toContain('my token is [secret]')
    expect(isHidden(said.join('\n') + gateway.stderr())).toEqual([])
    const files = readdirSync(data, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => path !== login && path !== credentials)
    expect(files.length).toBeGreaterThan(0)
    expect(files.filter((path) => isHidden(readFileSync(path, 'latin1')).length > 0)).toEqual([])
  })

  // Checked: if the error passes unchanged, the secret is in its message and data.
  it('appear in no error of a server that is passed on unchanged', async () => {
    const { gateway } = await open(['--expose', 'all'])
    const error = await gateway.call('a__refuse', {}).catch((reason) => reason)
    expect({ code: error.code, message: error.message, data: error.data }).toEqual({
      code: -32000,
      message: expect.stringContaining('no entry with [secret]'),
      data: { tried: ['[secret]'] }
    })
  })
})
