import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import Dockerode from 'dockerode'
import { afterEach, describe, expect, it } from 'vitest'
import { loadSettings } from '../../server/config/load-settings.ts'
import { sandboxLimits } from '../../server/config/sandbox-limits.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { createDockerEngine } from '../../server/sandbox/docker/docker-engine.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { copyImage, startPrivateEngine } from '../support/private-dockerd.ts'
import { startCore, type TestCore } from '../support/start-core.ts'
import { discard } from '../support/temporary-folder.ts'

const OUTAGE_MS = 10_000
/** Seconds, also where others use the machine. */
const SOON_MS = 25_000
const cleanUp: (() => Promise<unknown> | unknown)[] = []

afterEach(async () => {
  for (const job of cleanUp.splice(0).reverse()) await job()
})

async function keepOpen(core: TestCore): Promise<TestCore> {
  cleanUp.push(async () => {
    await core.stop()
    discard(core.dataDir)
  })
  return core
}

async function startRedis(port: number): Promise<ChildProcess> {
  const child = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  await eventually('Redis answers', async () => {
    for await (const chunk of child.stdout ?? []) if (String(chunk).includes('Ready to accept connections')) return true
    return false
  })
  child.stdout?.resume()
  return child
}

describe('outages', () => {
  it('engine away for 10 s: a clear word meanwhile, then the sessions come back with their files', async () => {
    const privateEngine = await startPrivateEngine()
    cleanUp.push(() => privateEngine.dispose())
    const settings = loadSettings({ env: {} })
    const ours = createDockerEngine({ limits: sandboxLimits(settings), logger: silentLogger })
    await copyImage(new Dockerode(), privateEngine.docker, await ours.ensureImage())
    const engine = createDockerEngine({
      limits: sandboxLimits(settings),
      logger: silentLogger,
      docker: privateEngine.docker
    })
    const core = await keepOpen(await startCore({ WARM_POOL_SIZE: '1', JANITOR_INTERVAL_SECONDS: '1' }, { engine }))
    const ids = [1, 2, 3].map(() => `test-${randomUUID()}`)
    await Promise.all(ids.map((id) => core.sh(id, `echo ${id} > mine.txt`)))

    await privateEngine.stop()
    const asked = performance.now()
    await expect(core.sh(ids[0]!, 'cat mine.txt')).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'engine_unavailable'
    })
    expect(performance.now() - asked).toBeLessThan(SOON_MS)
    await delay(OUTAGE_MS)
    await privateEngine.start()

    for (const id of ids) expect(await core.sh(id, 'cat mine.txt')).toContain(id)
    const notices = (await core.store.events.read(ids[0]!)).filter(({ type }) => type === 'session:notice')
    expect(notices.map(({ data }) => data.code)).toEqual(['sandbox_replaced', 'files_restored'])
    await eventually('the pool is full again', () => core.sessions.pool.ready === 1, 60_000)
  })

  it('Redis away for 10 s: a clear word meanwhile, no container purged, the same sandboxes afterwards', async () => {
    const port = await freePort()
    let redis = await startRedis(port)
    // After the core, which can't remove its containers without a store.
    cleanUp.push(() => redis.kill('SIGKILL'))
    const env = { REDIS_URL: `redis://127.0.0.1:${port}`, JANITOR_INTERVAL_SECONDS: '1' }
    const core = await keepOpen(await startCore(env, { sessions: { orphanGraceMs: 0 } }))
    const id = `test-${randomUUID()}`
    await core.sh(id, 'echo kept > a.txt')
    const containerId = await core.sessions.run(id, async (workspace) => workspace.containerId)

    redis.kill('SIGKILL')
    await once(redis, 'exit')
    const asked = performance.now()
    await expect(core.sh(id, 'cat a.txt')).rejects.toMatchObject({ kind: 'unavailable', code: 'store_unavailable' })
    expect(performance.now() - asked).toBeLessThan(SOON_MS)
    await delay(OUTAGE_MS)
    expect(await core.engine.inspect(containerId)).toMatchObject({ running: true })

    // It comes back empty: it keeps nothing on disk.
    redis = await startRedis(port)
    await eventually('the store answers', () =>
      core.store.sessions.now().then(
        () => true,
        () => false
      )
    )
    await core.sessions.janitor.round()
    await core.sessions.janitor.round()
    expect(await core.engine.inspect(containerId)).toMatchObject({ running: true })
    expect(await core.sh(id, 'cat a.txt')).toContain('kept')
    expect(await core.sessions.run(id, async (workspace) => workspace.containerId)).toBe(containerId)
  })
})
