import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import Dockerode from 'dockerode'
import { io } from 'socket.io-client'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'

const root = resolve(import.meta.dirname, '../..')
const bin = join(root, 'bin/mcp-orchestrator')
const run = promisify(execFile)
const docker = new Dockerode()
const started: ChildProcess[] = []
const folders: string[] = []

function folder(): string {
  const dir = temporaryFolder()
  folders.push(dir)
  return dir
}

async function cli(
  args: string[],
  env: Record<string, string> = {}
): Promise<{ code: number; out: string; err: string }> {
  const options = {
    env: { ...process.env, XDG_CONFIG_HOME: folder(), DATA_DIR: folder(), LLM_PROVIDER: 'demo', ...env }
  }
  return run(bin, args, options).then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
    ({ code, stdout, stderr }) => ({ code, out: stdout, err: stderr })
  )
}

async function serve(
  dataDir: string,
  env: Record<string, string> = {}
): Promise<{ child: ChildProcess; url: string; deployment: string; said: () => string }> {
  const child = spawn(bin, ['serve', '--port', '0'], {
    env: { ...process.env, DATA_DIR: dataDir, LLM_PROVIDER: 'demo', LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  started.push(child)
  const { promise, resolve: found, reject } = Promise.withResolvers<string>()
  let said = ''
  child.stderr?.on('data', (chunk) => {
    said += chunk
    const at = /is at (http:[^\s"]+)/.exec(said)?.[1]
    if (at) found(at)
  })
  child.once('exit', () => reject(new Error(said)))
  const url = await promise
  await eventually('ready', async () => (await fetch(`${url}/readyz`)).ok, 120_000)
  const ready = (await (await fetch(`${url}/readyz`)).json()) as { store: { detail: string } }
  return { child, url, deployment: ready.store.detail.replace('deployment ', ''), said: () => said }
}

async function containersOf(deployment: string): Promise<number> {
  const filters = { label: [`mcp-orchestrator.deployment=${deployment}`] }
  return (await docker.listContainers({ all: true, filters })).length
}

afterEach(async () => {
  for (const child of started.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  folders.splice(0).forEach(discard)
})

describe('the command line', () => {
  it('says what there is, and its version', async () => {
    expect((await cli(['--help'])).out).toMatch(/serve[\s\S]*doctor/)
    expect((await cli(['serve', '--help'])).out).toContain('SANDBOX_MEMORY_MB')
    expect((await cli(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it.each([
    [['nonsense'], {}, /no command "nonsense"/],
    [['serve', '--colour', 'red'], {}, /--colour/],
    [['serve', '--port', 'http'], {}, /--port must be a whole number/],
    [['serve'], { SANDBOX_CPUS: 'lots' }, /SANDBOX_CPUS must be a number/],
    [['serve'], { HOST: '0.0.0.0' }, /AUTH_TOKEN/]
  ])('stops at %j %j with one sentence', async (args, env, sentence) => {
    const { code, err } = await cli(args, env as Record<string, string>)
    expect(code).toBe(2)
    expect(err).toMatch(sentence)
    expect(err.trim().split('\n')).toHaveLength(1)
  })

  it('has a doctor that looks at everything for real', async () => {
    const { code, out } = await cli(['doctor', '--image'])
    expect(out).toMatch(/^ok {4}node +24\S+, linux-\w+, hash verified$/m)
    expect(out).toMatch(/^ok {4}contents \d+ packages\n {6}node 24[\s\S]*\n {6}bash \S+/m)
    expect(out).toMatch(/^ok {4}engine/m)
    expect(out).toMatch(/^ok {4}users +20000-20999, one for each container$/m)
    expect(out).toMatch(
      /^ok {4}limits +enforced: 512 MB, 0.5 CPU, 128 processes, 256 MB of files, uid 20\d{3}, no capabilities, seccomp profile applied$/m
    )
    expect(out).toMatch(/^ok {4}network +none/m)
    expect(out).toMatch(/^ok {4}store/m)
    expect(out).toMatch(/^ok {4}models.*demo/m)
    expect(code).toBe(0)
  })

  it('has a doctor that says what is wrong', async () => {
    const env = { DOCKER_HOST: 'unix:///nonexistent/docker.sock', REDIS_URL: 'redis://127.0.0.1:1' }
    const { code, out } = await cli(['doctor'], env)
    expect(code).toBe(1)
    expect(out).toMatch(/^FAILS engine +.*start Docker/m)
    expect(out).toMatch(/^FAILS store/m)
    const network = await cli(['doctor'], { SANDBOX_NETWORK: 'bridge', DOCKER_HOST: 'unix:///nonexistent/docker.sock' })
    expect(network.out).toMatch(/network +ON: .*bridge/)
  })
})

describe('serve', () => {
  it('ends on SIGTERM within seconds, with the files saved and no container left, and goes on with them', async () => {
    const dataDir = folder()
    const first = await serve(dataDir)
    await eventually('the pool is full', async () => (await containersOf(first.deployment)) === 2, 60_000)
    const { token } = await talk(first.url, undefined, 'write a.txt: kept')
    expect(await containersOf(first.deployment)).toBeGreaterThanOrEqual(2)
    const asked = performance.now()
    first.child.kill('SIGTERM')
    const [code] = await once(first.child, 'exit')
    expect(code).toBe(0)
    expect(performance.now() - asked).toBeLessThan(60_000)
    expect(await containersOf(first.deployment)).toBe(0)
    const second = await serve(dataDir)
    expect((await talk(second.url, token, 'read a.txt')).result).toContain('kept')
  }, 300_000)

  it('tells a session from its log and counts it in its metrics, all in JSON lines', async () => {
    const { child, url, said } = await serve(folder(), { LOG_LEVEL: 'info', WARM_POOL_SIZE: '0' })
    await talk(url, undefined, 'write a.txt: the text itself')
    const metrics = await (await fetch(`${url}/metrics`)).text()
    child.kill('SIGTERM')
    await once(child, 'exit')
    const lines = said()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const life = lines.filter(({ sessionId }) => sessionId === 'command-line-test')
    const sentences = life.map(({ msg }) => msg)
    for (const expected of ['Session opened.', 'Sandbox started.', 'Tool call approved.', 'Sandbox recycled.'])
      expect(sentences).toContain(expected)
    expect(life.find(({ msg }) => msg === 'Tool call approved.')).toMatchObject({ by: 'human' })
    expect(new Set(life.map(({ instance }) => instance)).size).toBe(1)
    expect(said()).not.toContain('the text itself')
    for (const sample of [
      /^mcp_orchestrator_build_info\{version="[\d.]+",node="v24[\d.]+"\} 1$/m,
      /^mcp_orchestrator_sandbox_starts_total 1$/m,
      /^mcp_orchestrator_live_sandboxes 1$/m,
      /^mcp_orchestrator_store_seconds_count\{part="events"\} [1-9]/m,
      /^mcp_orchestrator_model_step_seconds_count\{provider="demo"\} [1-9]/m,
      /^mcp_orchestrator_call_seconds_count\{server="workspace"\} 1$/m,
      /^mcp_orchestrator_sockets \d+$/m,
      /^mcp_orchestrator_data_free_bytes [1-9]\d*$/m
    ])
      expect(metrics).toMatch(sample)
  })

  it('is refused on a data folder or a port that is in use, with the reason', async () => {
    const dataDir = folder()
    await serve(dataDir, { WARM_POOL_SIZE: '0' })
    const second = await cli(['serve', '--port', '0'], { DATA_DIR: dataDir })
    expect(second).toMatchObject({ code: 1 })
    expect(JSON.parse(second.err)).toMatchObject({ level: 60, msg: expect.stringContaining('in use') })
    expect(second.err).toMatch(/data folder .* in use|in use/)
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const third = await cli(['serve', '--port', String(port)])
    expect(third.code).toBe(1)
    expect(third.err).toMatch(new RegExp(`Port ${port} is in use`))
    taken.close()
  })
})

/** One message, approved, in the session of these tests; opens it when no token is given. */
async function talk(
  url: string,
  token: string | undefined,
  message: string
): Promise<{ token: string; result: string }> {
  const socket = io(url, {
    query: { sessionId: 'command-line-test' },
    auth: { token },
    transports: ['websocket'],
    forceNew: true
  })
  const next = (event: string) => once(socket as never, event).then(([data]) => data as Record<string, unknown>)
  const notices: unknown[] = []
  socket.on('session:notice', (notice) => notices.push(notice))
  try {
    const [ready] = await Promise.all([next('system:ready'), next('session:snapshot')])
    const [asked, resulted] = [next('tool:approval_required'), next('tool:result')]
    const ended = next('turn:end')
    const endedEarly = ended.then((end) => {
      throw new Error(`The turn ended without its call: ${JSON.stringify([end, notices])}`)
    })
    endedEarly.catch(() => {})
    expect(await socket.emitWithAck('message', message)).toMatchObject({ ok: true })
    const { callId } = await Promise.race([asked, endedEarly])
    expect(await socket.emitWithAck('tool:approval', { callId, approved: true })).toMatchObject({ ok: true })
    const { content } = await resulted
    // While the turn goes on, also after a restart, the next message is refused.
    await ended
    return { token: String(ready.token ?? token), result: JSON.stringify(content) }
  } finally {
    socket.close()
  }
}
