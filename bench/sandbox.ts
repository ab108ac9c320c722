import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Core, createCore } from '../server/app/core.ts'
import { loadSettings } from '../server/config/load-settings.ts'
import { createLogger, silentLogger } from '../server/lib/logger.ts'
import { openFresh } from '../server/sessions/sandboxes/warm-pool.ts'
import { WorkspaceFiles } from '../server/sessions/sandboxes/workspace-files.ts'
import { openCheckpointStore } from '../server/storage/checkpoints/checkpoint-files.ts'
import { temporaryFolder } from '../tests/support/temporary-folder.ts'
import { bareContainers, coldDockerRun, removeContainers } from './bare-docker.ts'
import { round, step, summary, timed } from './statistics.ts'
import { measureToolCall } from './tool-call.ts'

const newId = () => `bench-${randomUUID()}`
const acquire = (core: Core, id: string) => core.sessions.run(id, async ({ containerId }) => containerId)

export async function sandboxFigures(): Promise<object> {
  const dataDir = temporaryFolder()
  const core = await openCore(dataDir, '1')
  const image = await core.engine.ensureImage()
  try {
    return {
      acquire: await step('sandbox: warm and cold acquire against docker run', () => acquireFigures(core, image)),
      toolCall: await step('sandbox: a tool call against a bare pipe', () => measureToolCall(core.engine)),
      twentyAtOnce: await step('sandbox: 20 sessions against 20 containers', () => twentyAtOnce(core, image)),
      checkpoint: await step('sandbox: checkpoints', () => checkpointFigures(core, dataDir)),
      memory: await step('sandbox: memory of 50 idle sessions', () => memoryFigures(core))
    }
  } finally {
    await core.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function acquireFigures(core: Core, image: string): Promise<object> {
  const coldDir = temporaryFolder()
  const coldCore = await openCore(coldDir, '0')
  const warm: number[] = []
  const cold: number[] = []
  const bare: number[] = []
  for (let block = 0; block < 20; block++) {
    const [warmId, coldId] = [newId(), newId()]
    await poolIsFull(core)
    warm.push(await timed(() => acquire(core, warmId)))
    await poolIsFull(core)
    cold.push(await timed(() => acquire(coldCore, coldId)))
    bare.push(await coldDockerRun(image))
    await Promise.all([core.sessions.destroy(warmId), coldCore.sessions.destroy(coldId)])
  }
  await coldCore.stop()
  rmSync(coldDir, { recursive: true, force: true })
  const [w, c, b] = [summary(warm), summary(cold), summary(bare)]
  return {
    warmMs: w,
    coldMs: c,
    dockerRunMs: b,
    dockerRunOverWarm: round(b.p50 / w.p50),
    coldOverDockerRun: round(c.p50 / b.p50)
  }
}

async function openCore(dataDir: string, pool: string): Promise<Core> {
  const env = { DATA_DIR: dataDir, WARM_POOL_SIZE: pool, MAX_SESSIONS: '200', PAUSE_AFTER_SECONDS: '3600' }
  const core = await createCore(loadSettings({ env }), createLogger('error'))
  await core.engine.ensureImage(console.error)
  await core.start()
  return core
}

async function poolIsFull(core: Core): Promise<void> {
  while (core.sessions.pool.ready < 1) await new Promise((resolve) => setTimeout(resolve, 10))
}

async function twentyAtOnce(core: Core, image: string): Promise<object> {
  const bare = await bareContainers(image, 20)
  await removeContainers(bare.ids)
  await poolIsFull(core)
  const ids = Array.from({ length: 20 }, newId)
  const ms = await timed(() => Promise.all(ids.map((id) => acquire(core, id))))
  await Promise.all(ids.map((id) => core.sessions.destroy(id)))
  return { lastReadyMs: round(ms), bareContainersMs: round(bare.ms), ratio: round(ms / bare.ms) }
}

async function checkpointFigures(core: Core, dataDir: string): Promise<object> {
  const store = openCheckpointStore({ dir: join(dataDir, 'bench'), maxSessionBytes: 2 ** 30, logger: silentLogger })
  const figures: Record<string, object> = {}
  for (const count of [1, 100, 10_000]) {
    const connection = await openFresh(core.engine, { deployment: 'bench', instance: 'bench' }, 1, new Set())
    const checkpoint = await store.open(newId(), 1)
    const files = new WorkspaceFiles(connection, checkpoint)
    const make = `for i in range(${count}): open('f%d' % i, 'w').write('x' * 100 + str(i))`
    await connection.callTool('execute_command', { command: `python3 -c "${make}"` }, { timeoutMs: 60_000 })
    const first = await timed(() => files.sync())
    const samples: number[] = []
    for (let round = 0; round < 40; round++) {
      await connection.callTool('execute_command', { command: `echo ${round} > f0` }, { timeoutMs: 5000 })
      samples.push(await timed(() => files.sync()))
    }
    figures[`of${count}Files`] = { allChangedMs: round(first), oneChangedMs: summary(samples) }
    await checkpoint.close()
    await connection.close()
    await core.engine.remove(connection.containerId)
  }
  return figures
}

async function memoryFigures(core: Core): Promise<object> {
  const before = process.memoryUsage().rss
  const engineBefore = shimBytes()
  const ids = Array.from({ length: 50 }, newId)
  for (const id of ids) await acquire(core, id)
  global.gc?.()
  const server = process.memoryUsage().rss
  const shims = shimBytes() - engineBefore
  const inside = await containerBytes(core, ids)
  await Promise.all(ids.map((id) => core.sessions.destroy(id)))
  const mb = (bytes: number) => round(bytes / 2 ** 20)
  return {
    perIdleSessionMb: { container: mb(inside / 50), shim: mb(shims / 50), server: mb((server - before) / 50) },
    serverWith50IdleSessionsMb: mb(server)
  }
}

/** Resident memory of the engine's shims, one per container. */
function shimBytes(): number {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .reduce((sum, pid) => sum + shimRss(pid), 0)
}

function shimRss(pid: string): number {
  try {
    if (!readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('containerd-shim')) return 0
    const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Number(kb ?? 0) * 1024
  } catch {
    return 0
  }
}

async function containerBytes(core: Core, ids: string[]): Promise<number> {
  const used = await Promise.all(
    ids.map((id) =>
      core.sessions.hold(id, async (hold) => {
        const command = 'cat /sys/fs/cgroup/memory.current /sys/fs/cgroup/memory/memory.usage_in_bytes 2>/dev/null'
        const { content } = await hold.runTool({ callId: randomUUID(), name: 'execute_command', args: { command } })
        return Number(/\d+/.exec((content[0] as { text: string }).text)?.[0] ?? 0)
      })
    )
  )
  return used.reduce((sum, bytes) => sum + bytes, 0)
}
