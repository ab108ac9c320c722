import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { testRedisEnv } from '../../tests/support/test-redis.ts'
import { silentLogger } from '../lib/logger.ts'
import { openCheckpointStore } from './checkpoints/checkpoint-files.ts'
import { claimDataDir } from './claim-data-dir.ts'
import { deploymentFile, readDeploymentId } from './deployment-file.ts'
import { openRedisStore } from './redis/open-redis-store.ts'
import type { Store } from './store.ts'

let redis: Awaited<ReturnType<typeof testRedisEnv>>
const stores: Store[] = []
const folders: string[] = []

beforeEach(async () => {
  redis = await testRedisEnv()
})

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  folders.splice(0).forEach(discard)
})

function folder(): string {
  const dir = temporaryFolder()
  folders.push(dir)
  return dir
}

const checkpointsIn = (dataDir: string) =>
  openCheckpointStore({ dir: join(dataDir, 'checkpoints'), maxSessionBytes: 1e6, logger: silentLogger })

/** Does what a start does with this folder. `address` is its name for the Redis. */
async function start(dataDir: string, { address = 'here', isAccepted = false } = {}): Promise<Store> {
  const file = deploymentFile(dataDir, address)
  const offered = readDeploymentId(file) ?? crypto.randomUUID()
  const { REDIS_URL: url, DEPLOYMENT: deployment } = redis
  const store = await openRedisStore({ url, deployment, deploymentId: offered, logger: silentLogger })
  stores.push(store)
  await claimDataDir({ dataDir, file, offered, store, checkpoints: checkpointsIn(dataDir), isAccepted })
  return store
}

async function useSession({ sessions, events }: Store): Promise<void> {
  await sessions.acquire('s', 'i', 1000)
  await events.append('s', [{ type: 'tool:started', data: { callId: 'c' } }])
}

const refusal = (why: RegExp) => ({ code: 'wrong_data_dir', message: expect.stringMatching(why) })

describe('a data folder', () => {
  it('of another deployment is refused, until the operator accepts it', async () => {
    await start(folder())
    const other = folder()
    const own = redis
    redis = await testRedisEnv()
    await start(other)
    redis = own
    await expect(start(other)).rejects.toMatchObject(refusal(/belongs to another deployment.*--accept-data-dir/))
    await start(other, { isAccepted: true })
    await start(other)
  })

  it('without files is refused where sessions have files, and leaves no trace there', async () => {
    const [shared, forgotten] = [folder(), folder()]
    await useSession(await start(shared))
    await expect(start(forgotten)).rejects.toMatchObject(refusal(/sessions with files.*Set DATA_DIR/))
    expect(existsSync(join(forgotten, 'deployments'))).toBe(false)
    await start(shared)
    await start(shared, { address: 'the same Redis by another name' })
  })

  it('of its own is refused while other instances run', async () => {
    const shared = folder()
    const { sessions } = await start(shared)
    await sessions.heartbeat('one', 60_000)
    await start(shared)
    await expect(start(folder())).rejects.toMatchObject(refusal(/Other instances are running/))
  })

  it('from before ids were kept in it is recognized by the files of its sessions', async () => {
    const before = folder()
    await useSession(await start(folder()))
    const checkpoint = await checkpointsIn(before).open('s', 1)
    const entry = { path: 'd', type: 'dir', mode: 0o755, mtimeMs: 0 } as const
    await checkpoint.commit({ put: [entry], deleted: [] })
    await checkpoint.close()
    await start(before)
  })

  it('gives an emptied Redis its id back, and a new one is taken where nothing has been stored in files', async () => {
    const first = folder()
    const store = await start(first)
    const id = await store.sessions.deploymentId()
    await store.sessions.acquire('chat', 'i', 1000)
    await start(folder())
    redis = { ...redis, DEPLOYMENT: `${redis.DEPLOYMENT}-emptied` }
    expect(await (await start(first)).sessions.deploymentId()).toBe(id)
  })
})
