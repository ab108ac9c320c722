import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import { openEngine } from '../../server/app/engine/open-engine.ts'
import { loadSettings } from '../../server/config/load-settings.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { deploymentFile, readDeploymentId } from '../../server/storage/deployment-file.ts'
import { eventually } from '../support/eventually.ts'
import { type OwnRedis, ownRedis } from '../support/own-redis.ts'
import { productArgs } from '../support/product.ts'
import { serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const engine = await openEngine(loadSettings({ env: {} }), silentLogger)
const children: ChildProcess[] = []
const redises: OwnRedis[] = []

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await stopServers()
  await Promise.all(redises.map((redis) => redis.kill()))
})

async function startRedis(): Promise<OwnRedis> {
  const redis = await ownRedis()
  redises.push(redis)
  return redis
}

const list = (deployment: string) => engine.list(deployment)
const idsOf = async (deployment: string) => (await list(deployment)).map(({ id }) => id).toSorted()

/** Starts a server with two warm sandboxes and does not wait until it is ready. */
function startServer(dataDir: string): ChildProcess {
  const env = { PATH: process.env.PATH, DATA_DIR: dataDir, LLM_PROVIDER: 'demo', WARM_POOL_SIZE: '2', PORT: '0' }
  const child = spawn(process.execPath, [...productArgs('main'), 'serve'], { cwd: dataDir, env, stdio: 'ignore' })
  children.push(child)
  return child
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}

/** The deployment of a data folder, once a server has been started there. */
const deploymentOf = (dataDir: string) => readDeploymentId(deploymentFile(dataDir, 'embedded')) ?? ''

/** Starts a server and kills it as soon as it has made containers of its own. */
async function crash(dataDir: string): Promise<void> {
  const before = new Set((await list(deploymentOf(dataDir))).map(({ instance }) => instance))
  const child = startServer(dataDir)
  await eventually('it makes containers', async () =>
    (await list(deploymentOf(dataDir))).some(({ instance }) => !before.has(instance))
  )
  await end(child, 'SIGKILL')
}

// Each test has its own deployment, and most of the time they wait.
describe.concurrent('containers of a server that was killed', () => {
  it('are gone once the next start is ready, after three crashes and when one is paused', async () => {
    const dataDir = temporaryFolder()
    for (let crashes = 0; crashes < 3; crashes++) await crash(dataDir)
    expect((await idsOf(deploymentOf(dataDir))).length).toBeGreaterThan(0)
    const paused = await engine.create({ deployment: deploymentOf(dataDir), instance: randomUUID() })
    await engine.pause?.(paused)
    const server = await serve({ WARM_POOL_SIZE: '0' }, { dataDir })
    expect(server.deployment).toBe(deploymentOf(dataDir))
    expect(await idsOf(server.deployment)).toEqual([])
  })

  it('are gone when the next start is broken off with Ctrl-C', async () => {
    const dataDir = temporaryFolder()
    await crash(dataDir)
    const known = await list(deploymentOf(dataDir))
    expect(known.length).toBeGreaterThan(0)
    const child = startServer(dataDir)
    // As early as a person could do it: the start has just begun and holds the lock on the folder.
    await eventually('it has the lock', async () => {
      const left = (await list(deploymentOf(dataDir))).filter(({ id }) => known.some((each) => each.id === id))
      return left.length < known.length || child.exitCode !== null
    })
    await end(child, 'SIGINT')
    expect(await idsOf(deploymentOf(dataDir))).toEqual([])
    await serve({}, { dataDir })
  })
})

describe.concurrent('several instances on one Redis', () => {
  it('leave the containers of live ones alone, and a start removes those of one that has ended', async () => {
    const redis = await startRedis()
    const began = Date.now()
    const env = { REDIS_URL: redis.url, WARM_POOL_SIZE: '1' }
    const dataDir = temporaryFolder()
    const [one, two] = await Promise.all([serve(env, { dataDir }), serve(env, { dataDir })])
    await eventually('two warm sandboxes', async () => (await idsOf(one.deployment)).length === 2)
    const live = await idsOf(one.deployment)
    const three = await serve(env, { dataDir })
    await eventually('a third one', async () => (await idsOf(one.deployment)).length === 3)
    await three.kill9()
    const admin = new Redis(redis.url)
    await eventually('its record has ended', async () => {
      const key = (await admin.keys('*instances')).find((name) => !name.includes('ended')) ?? ''
      return (await admin.zcount(key, Date.now(), '+inf')) === 2
    })
    await admin.quit()
    // Until then the store is too new to prove anything about instances.
    await eventually('the store is old enough', async () => Date.now() - began > 20_000)
    const four = await serve({ ...env, WARM_POOL_SIZE: '0' }, { dataDir })
    expect(four.deployment).toBe(one.deployment)
    expect(await idsOf(one.deployment)).toEqual(live)
    expect(two.deployment).toBe(one.deployment)
  })

  it('tell open pages when Redis was emptied, keep their deployment, and release at once what belongs to no session', async () => {
    const redis = await startRedis()
    const env = { REDIS_URL: redis.url }
    const dataDir = temporaryFolder()
    const [one, two] = await Promise.all([serve(env, { dataDir }), serve(env, { dataDir })])
    const id = `test-${randomUUID()}`
    const cookie = randomUUID()
    const client = one.connect(id, { browser: cookie })
    await client.ready()
    await client.sh('echo private > a.txt')
    // One that has a sandbox and no tab.
    const left = one.connect(`test-${randomUUID()}`, { browser: cookie })
    await left.ready()
    await left.sh('echo left > a.txt')
    left.close()
    const before = await idsOf(one.deployment)
    expect(before).toHaveLength(2)
    const other = two.connect(`test-${randomUUID()}`, { browser: cookie })
    await other.ready()
    // An answer proves that it has joined the room.
    await other.turn('hello')
    const admin = new Redis(redis.url)
    await admin.flushall()
    await Promise.all([client.wait('session:lost'), other.wait('session:lost')])
    await client.wait('disconnect')
    // A person who only knows the id does not get the files of the former owner.
    expect(await two.connect(id, { browser: randomUUID() }).refused()).toBe('session_lost')
    const next = two.connect(`test-${randomUUID()}`, { browser: cookie })
    await next.ready()
    expect(await next.sh('echo alive')).toContain('alive')
    // Its own sandbox is the only one: those of lost sessions went without waiting until they are idle.
    await eventually('one container is left', async () => (await idsOf(one.deployment)).length === 1)
    expect(before).not.toContain((await idsOf(one.deployment))[0])
    expect(await admin.keys(`*${id}*`)).toEqual([])
    expect((await admin.keys('*deployment-id')).length).toBe(1)
    expect(await admin.get((await admin.keys('*deployment-id'))[0]!)).toBe(one.deployment)
    await admin.quit()
  })
})
