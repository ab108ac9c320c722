import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { silentLogger } from '../../lib/logger.ts'
import { describeEventLog } from '../event-log.contract.ts'
import { describeKeyValueStore } from '../key-value-store.contract.ts'
import { describeSessionStore, type StoreUnderTest } from '../session-store.contract.ts'
import { openRedisStore } from './open-redis-store.ts'

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
