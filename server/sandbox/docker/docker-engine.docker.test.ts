import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Dockerode from 'dockerode'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import type { SandboxLimits } from '../port.ts'
import { describeSandboxEngine, run } from '../sandbox-engine.contract.ts'
import { createDockerEngine } from './docker-engine.ts'
import { seccompOption } from './engine/seccomp-profile.ts'
import { createTestSandboxes, LIMITS } from './sandboxes.fixture.ts'

describeSandboxEngine('docker', async () => createTestSandboxes())

const sandboxes = createTestSandboxes()
const { engine, docker, owner } = sandboxes

beforeAll(async () => {
  await engine.ensureImage()
})
afterAll(() => sandboxes.removeAll())

const lost = { code: 'connection_lost', kind: 'unavailable' }

describe('a sandbox', () => {
  it('has every hardening field on the engine', async () => {
    const id = await sandboxes.create()
    const { Config, HostConfig } = await docker.getContainer(id).inspect()
    expect(HostConfig).toMatchObject({
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', seccompOption()],
      GroupAdd: ['10001'],
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      IpcMode: 'private',
      Init: false,
      PidsLimit: 128,
      Memory: 512 * 1024 * 1024,
      MemorySwap: 512 * 1024 * 1024,
      NanoCpus: 5e8,
      OomScoreAdj: 500,
      RestartPolicy: { Name: 'no' },
      AutoRemove: false,
      LogConfig: { Type: 'none' },
      Privileged: false,
      Binds: null
    })
    expect(HostConfig.Ulimits?.map(({ Name }) => Name).sort()).toEqual(['core', 'fsize', 'nofile'])
    expect(Object.keys(HostConfig.Tmpfs ?? {}).sort()).toEqual(['/run/mcp', '/tmp', '/workspace'])
    expect(Config.User).toMatch(/^(20\d{3}):\1$/)
    expect(Config.Labels['mcp-orchestrator.deployment']).toBe(owner.deployment)
    await engine.remove(id)
  })

  it('shows its limits from inside, and a difference is found', async () => {
    const { id, connection } = await sandboxes.open()
    expect(await engine.verifyLimits(connection)).toMatchObject({ capabilities: '0', interfaces: ['lo'], pids: 128 })
    const stricter: Partial<SandboxLimits>[] = [{ memoryMb: 256 }, { pids: 64 }, { cpus: 0.25 }, { workspaceMb: 64 }]
    for (const change of stricter) {
      const other = createDockerEngine({ limits: { ...LIMITS, ...change }, logger: silentLogger, docker })
      await expect(other.verifyLimits(connection)).rejects.toMatchObject({ code: 'limits_not_enforced' })
    }
    await engine.remove(id)
  })
})

describe('a connection', () => {
  // Checked: if only the first thread counts, the process goes on writing under the next owner.
  it('is taken over without leaving processes that only look ended or are held by a debugger', async () => {
    const { id, connection } = await sandboxes.open()
    const script = (text: string) => `python3 -c '${text}' >/dev/null 2>&1 &`
    const headless = `import ctypes, threading, time
threading.Thread(target=lambda: time.sleep(331)).start()
ctypes.CDLL(None).syscall(60 if ${JSON.stringify(process.arch)} == "x64" else 93, 0)`
    const traced = `import ctypes, os, signal, time
if os.fork() == 0:
  ctypes.CDLL(None).ptrace(0, 0, 0, 0)
  os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(332)`
    await run(connection, script(headless) + script(traced))
    const states = 'ps -eo stat,comm | grep python3'
    await vi.waitFor(async () => {
      const { stdout } = await run(connection, states)
      expect(stdout).toMatch(/^Zl/m)
      expect(stdout).toMatch(/^t/m)
    })
    const next = await engine.connect(id, 2)
    expect((await run(next, `${states} | grep -v "^Z "`)).stdout).toBe('')
    await engine.remove(id)
  })

  it('opens on a paused container, and lives through a pause', async () => {
    const { id, connection: first } = await sandboxes.open(1)
    await engine.pause(id)
    await engine.pause(id)
    expect(await engine.inspect(id)).toMatchObject({ running: true, paused: true })
    const waiting = first.ping()
    await engine.unpause(id)
    await engine.unpause(id)
    await waiting
    await engine.pause(id)
    const second = await engine.connect(id, 2)
    await second.ping()
    await engine.pause(id)
    await engine.remove(id)
    await second.closed
  })

  it('is lost when the container is killed', async () => {
    const { id, connection } = await sandboxes.open()
    const running = expect(run(connection, 'sleep 300')).rejects.toMatchObject(lost)
    await docker.getContainer(id).kill()
    await running
    await connection.closed
    await vi.waitFor(async () => expect(await engine.inspect(id)).toMatchObject({ running: false, exitCode: 137 }))
    await expect(engine.connect(id, 2)).rejects.toMatchObject({ code: 'container_not_running' })
    await engine.remove(id)
  })

  it('is also lost if the engine forgets to end its stream', async () => {
    const forgetful = createServer((client) => {
      const upstream = connect('/var/run/docker.sock')
      client.pipe(upstream)
      upstream.on('data', (chunk) => client.write(chunk))
      for (const socket of [client, upstream]) socket.on('error', () => {})
      client.on('close', () => upstream.destroy())
    })
    forgetful.listen(0, '127.0.0.1')
    await once(forgetful, 'listening')
    const { port } = forgetful.address() as AddressInfo
    const through = createDockerEngine({
      limits: LIMITS,
      logger: silentLogger,
      docker: new Dockerode({ host: '127.0.0.1', port })
    })
    const id = await sandboxes.create()
    const connection = await through.connect(id, 1)
    expect(await run(connection, 'sleep 3; echo slow')).toMatchObject({ stdout: 'slow\n' })
    const call = run(connection, 'sleep 100', 120_000)
    await docker.getContainer(id).kill()
    await expect(call).rejects.toMatchObject(lost)
    expect(connection.isOpen).toBe(false)
    await engine.remove(id)
    await through.close()
    forgetful.close()
  })

  it('is resumed only if the container still has its files', async () => {
    const { id, connection } = await sandboxes.open(4)
    await connection.close()
    const resumed = await engine.connect(id, 5, { resume: true })
    await resumed.ping()
    await docker.getContainer(id).restart({ t: 0 })
    await expect(engine.connect(id, 6, { resume: true })).rejects.toMatchObject({ code: 'container_restarted' })
    await engine.remove(id)
  })
})

describe('a failure', () => {
  it.each<[string, Partial<SandboxLimits>]>([
    ['runtime_missing', { runtime: 'no-such-runtime' }],
    ['network_missing', { network: 'no-such-network' }]
  ])('%s leaves no container behind', async (code, change) => {
    const other = createDockerEngine({ limits: { ...LIMITS, ...change }, logger: silentLogger, docker })
    const mine = { ...owner, deployment: `${owner.deployment}-${code}` }
    await expect(other.create(mine)).rejects.toMatchObject({ code })
    expect(await engine.list(mine.deployment)).toEqual([])
  })

  it('names a missing image', async () => {
    const name = 'mcp-orchestrator-sandbox:no-such-tag'
    const images = { name: async () => name, exists: async () => false, ensure: async () => name }
    const other = createDockerEngine({ limits: LIMITS, logger: silentLogger, docker, images })
    await expect(other.create(owner)).rejects.toMatchObject({ code: 'image_missing' })
  })

  it('is clear at once when the engine is down', async () => {
    const dead = new Dockerode({ socketPath: join(tmpdir(), 'no-such-engine.sock') })
    const other = createDockerEngine({ limits: LIMITS, logger: silentLogger, docker: dead })
    const started = performance.now()
    const calls = [
      other.status(),
      other.create(owner),
      other.connect('x', 1),
      other.inspect('x'),
      other.pause('x'),
      other.unpause('x'),
      other.remove('x'),
      other.list('x')
    ]
    for (const result of await Promise.allSettled(calls)) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'engine_unavailable' } })
    }
    expect(performance.now() - started).toBeLessThan(10_000)
  })

  it('ends when the engine accepts a call but never answers', async () => {
    const socketPath = join(tmpdir(), `silent-engine-${process.pid}.sock`)
    const silent = createServer((socket) => socket.resume()).listen(socketPath)
    const other = createDockerEngine({ limits: LIMITS, logger: silentLogger, docker: new Dockerode({ socketPath }) })
    await expect(other.status()).rejects.toMatchObject({ code: 'engine_timeout', kind: 'timeout' })
    await new Promise((resolve) => silent.close(resolve))
  })

  it('holds no socket to an engine that refuses to start a server', async () => {
    const socketPath = join(tmpdir(), `refusing-engine-${process.pid}.sock`)
    const refusing = createHttpServer((request, response) => {
      const isStart = request.url?.endsWith('/start') ?? false
      response.writeHead(isStart ? 409 : 201, { connection: isStart ? 'keep-alive' : 'close' })
      response.end(JSON.stringify(isStart ? { message: 'container is not running' } : { Id: 'exec-1' }))
    }).listen(socketPath)
    // As the real one: it is not the engine that ends a connection.
    refusing.keepAliveTimeout = 0
    const other = createDockerEngine({ limits: LIMITS, logger: silentLogger, docker: new Dockerode({ socketPath }) })
    await expect(other.connect('x', 1)).rejects.toMatchObject({ code: 'container_not_running' })
    const open = () => new Promise<number>((resolve) => refusing.getConnections((_, count) => resolve(count)))
    await vi.waitFor(async () => expect(await open()).toBe(0))
    refusing.close()
    await once(refusing, 'close')
  })
})
