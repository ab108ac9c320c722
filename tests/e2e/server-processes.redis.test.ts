import { randomUUID } from 'node:crypto'
import Dockerode from 'dockerode'
import { afterEach, describe, expect, it } from 'vitest'
import { openEngine } from '../../server/app/engine/open-engine.ts'
import { loadSettings } from '../../server/config/load-settings.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { openEmbeddedStore } from '../../server/storage/embedded/open-embedded-store.ts'
import { eventually } from '../support/eventually.ts'
import { type SessionProcess, spawnSessionProcess } from '../support/spawn-session-process.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'
import { testRedisEnv } from '../support/test-redis.ts'

const docker = new Dockerode()
const engine = await openEngine(loadSettings({ env: {} }), silentLogger)
const started: SessionProcess[] = []
const folders: string[] = []

async function spawnIn(dataDir: string, env: Record<string, string> = {}): Promise<SessionProcess> {
  const process = await spawnSessionProcess({ DATA_DIR: dataDir, ...env })
  started.push(process)
  return process
}

function folder(): string {
  const dir = temporaryFolder()
  folders.push(dir)
  return dir
}

const commandRuns = (containerId: string) =>
  eventually('the command runs', async () => {
    const { Processes } = await docker.getContainer(containerId).top()
    // The process itself: the shell that will start it has the same words in its arguments.
    return Processes.some((row: string[]) => row.at(-1) === 'sleep 300')
  })

const containersOf = async ({ deployment }: SessionProcess) => (await engine.list(deployment)).map(({ id }) => id)

afterEach(async () => {
  const deployments = new Set(started.map(({ deployment }) => deployment))
  await Promise.all(started.splice(0).map((process) => process.stop()))
  for (const deployment of deployments) {
    for (const { id } of await engine.list(deployment)) await engine.remove(id)
  }
  folders.splice(0).forEach(discard)
})

describe('several server processes', () => {
  it('share a Redis and make exactly one container for 100 concurrent acquires', async () => {
    const env = await testRedisEnv()
    const dataDir = folder()
    const [a, b] = await Promise.all([spawnIn(dataDir, env), spawnIn(dataDir, env)])
    expect(a.deployment).toBe(b.deployment)
    const id = `test-${randomUUID()}`
    const calls = Array.from({ length: 100 }, (_, at) =>
      (at % 2 ? a : b).call(id, 'write_file', { path: `f${at}`, content: `${at}` })
    )
    const replies = await Promise.all(calls.map(({ reply }) => reply))
    expect(replies.filter(({ ok }) => !ok)).toEqual([])
    expect(new Set(replies.map(({ containerId }) => containerId)).size).toBe(1)
    expect((await containersOf(a)).length).toBe(1)
    expect(await a.sh(id, 'ls | wc -l')).toContain('100')
  })

  it('go on in the same container when one of them is killed during a command', async () => {
    const env = await testRedisEnv()
    const dataDir = folder()
    const [a, b] = await Promise.all([spawnIn(dataDir, env), spawnIn(dataDir, env)])
    const id = `test-${randomUUID()}`
    await a.sh(id, 'echo kept > a.txt')
    const running = a.call(id, 'execute_command', { command: 'echo once >> log.txt; sleep 300' })
    const containerId = await running.entered
    await commandRuns(containerId)
    await a.kill('SIGKILL')
    expect(await b.sh(id, 'cat a.txt log.txt; pgrep -x sleep | wc -l')).toMatch(/kept\s+once\s+/)
    expect(await containersOf(b)).toEqual([containerId])
  })

  it('refuse an owner that wakes up after another took over', async () => {
    const env = await testRedisEnv()
    const dataDir = folder()
    const [old, next] = await Promise.all([spawnIn(dataDir, env), spawnIn(dataDir, env)])
    const id = `test-${randomUUID()}`
    const running = old.call(id, 'execute_command', { command: 'sleep 300; echo old >> log.txt' })
    await commandRuns(await running.entered)
    old.child.kill('SIGSTOP')
    await next.sh(id, 'echo next >> log.txt')
    old.child.kill('SIGCONT')
    expect(await running.reply).toMatchObject({ ok: false, code: 'outcome_unknown' })
    // Nothing of the old owner is left that could still act. It has to acquire the session again, like anyone else.
    expect(await next.sh(id, 'cat log.txt; pgrep -x sleep || echo alone')).toMatch(/^next\s+alone/)
    const late = await old.call(id, 'write_file', { path: 'late.txt', content: 'x' }).reply
    expect(late.ok).toBe(true)
    expect(await next.sh(id, 'cat log.txt late.txt')).toMatch(/^next\s+x/)
  })
})

describe('one server process on the embedded store', () => {
  it('is killed during a command and takes its session over at the next start', async () => {
    const dataDir = folder()
    const first = await spawnIn(dataDir)
    const id = `test-${randomUUID()}`
    await first.sh(id, 'echo kept > a.txt')
    const running = first.call(id, 'execute_command', { command: 'echo once >> log.txt; sleep 300' })
    const containerId = await running.entered
    await commandRuns(containerId)
    await first.kill('SIGKILL')

    const second = await spawnIn(dataDir, { JANITOR_INTERVAL_SECONDS: '1' })
    expect(second.deployment).toBe(first.deployment)
    expect(await second.sh(id, 'cat a.txt log.txt')).toMatch(/kept\s+once/)
    expect((await second.sh(id, 'cat log.txt')).match(/once/g)).toHaveLength(1)
    await eventually('one container, no orphan', async () => {
      const containers = await containersOf(second)
      return containers.length === 1 && containers[0] === containerId
    })
    const store = await openEmbeddedStore({ dataDir, logger: silentLogger })
    const results = (await store.events.read(id)).filter(({ data }) => data.callId === running.callId)
    expect(results.map(({ type, data }) => [type, data.outcome])).toEqual([
      ['tool:started', undefined],
      ['tool:result', 'unknown']
    ])
    await store.close()
  })

  it('leaves no warm container behind after a kill, one janitor round later', async () => {
    const dataDir = folder()
    const first = await spawnIn(dataDir, { WARM_POOL_SIZE: '2' })
    await eventually('two warm ones', async () => (await containersOf(first)).length === 2)
    await first.kill('SIGKILL')
    const second = await spawnIn(dataDir, { JANITOR_INTERVAL_SECONDS: '1' })
    await eventually('none', async () => (await containersOf(second)).length === 0, 40_000)
  })
})
