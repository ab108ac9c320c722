import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type OwnRedis, ownRedis } from '../../../tests/support/own-redis.ts'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { describeEventLog } from '../event-log.contract.ts'
import { describeFileHeads } from '../file-heads.contract.ts'
import { describeKeyValueStore } from '../key-value-store.contract.ts'
import { describeSessionStore, type StoreUnderTest } from '../session-store.contract.ts'
import type { Store } from '../store.ts'
import { openRedisStore } from './open-redis-store.ts'
import { beginRedisRestore, dumpRedis, loadRedis } from './redis-backup.ts'

const url = process.env.TEST_REDIS_URL
if (!url) throw new Error('Set TEST_REDIS_URL to a Redis that these tests may use, such as redis://127.0.0.1:6379/15.')

async function openTwo(): Promise<StoreUnderTest> {
  const options = { url: url ?? '', logger: silentLogger, keyPrefix: `test-${randomUUID()}:` }
  const [first, second] = await Promise.all([openRedisStore(options), openRedisStore(options)])
  const admin = new Redis(options.url)
  // Not FLUSHDB: other tests may be using the same Redis. To this store it is the same.
  const empty = async () => {
    const keys = await admin.keys(`${options.keyPrefix}*`)
    if (keys.length > 0) await admin.del(keys)
  }
  const dispose = async () => {
    await empty()
    await Promise.all([first.close(), second.close(), admin.quit()])
  }
  return { first, second, empty, dispose }
}

describeSessionStore('redis', openTwo)
describeEventLog('redis', openTwo)
describeKeyValueStore('redis', openTwo)
describeFileHeads('redis', openTwo)

describe('deployments on one Redis', () => {
  let redis: OwnRedis
  const stores: Store[] = []
  const open = async (deployment?: string) => {
    const store = await openRedisStore({ url: redis.url, logger: silentLogger, deployment })
    stores.push(store)
    return store
  }
  beforeEach(async () => {
    redis = await ownRedis()
  })
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close()
    await redis.kill()
  })

  it('see nothing of each other', async () => {
    const [one, two] = [await open('one'), await open('two')]
    await one.sessions.acquire('s', 'h', 60_000)
    await one.events.append('s', [{ type: 't', data: {} }])
    await one.keyValues.set('space', 'key', 1)
    await one.sessions.heartbeat('h', 60_000)
    expect(await two.sessions.list()).toEqual([])
    expect(await two.events.read('s')).toEqual([])
    expect(await two.keyValues.get('space', 'key')).toBeNull()
    expect(await two.sessions.instances()).toEqual([])
    expect(await two.sessions.deploymentId()).not.toBe(await one.sessions.deploymentId())
  })

  it('are copied by a backup with the long texts of their events', async () => {
    const one = await open('one')
    const texts = [1, 2, 3].map((n) => `${n}`.padEnd(300_000, 'x'))
    await one.events.append(
      's',
      [...texts, texts[0]].map((text) => ({ type: 't', data: { text } }))
    )
    const dir = temporaryFolder()
    const options = (deployment: string) => ({ url: redis.url, deployment, logger: silentLogger })
    await dumpRedis(options('one'), join(dir, 'dump'))
    await beginRedisRestore(options('two'), dir)
    await loadRedis(options('two'), join(dir, 'dump'))
    discard(dir)
    const two = await open('two')
    expect((await two.events.read('s')).map(({ data }) => String(data.text).slice(0, 2))).toEqual([
      '1x',
      '2x',
      '3x',
      '1x'
    ])
    expect(await two.events.bytes(['s'])).toBe(await one.events.bytes(['s']))
  })
})
