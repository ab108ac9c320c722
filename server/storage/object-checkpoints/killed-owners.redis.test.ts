/** Two machines share a Redis and a bucket. One dies around the change of the head, or while it collects; the other one goes on. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { testRedisEnv } from '../../../tests/support/test-redis.ts'
import { silentLogger } from '../../lib/logger.ts'
import { FakeObjectService } from '../objects/fake-object-service.ts'
import { hasRealService, openTestObjects } from '../objects/fake-object-store.ts'
import { openRedisStore } from '../redis/open-redis-store.ts'
import { claimBucket } from './claim-bucket.ts'
import {
  CHANGES,
  collect,
  filesAfter,
  foundAfter,
  live,
  liveUntilRequest,
  type Place,
  prepare
} from './killed-commits.fixture.ts'

const SERVICES = {
  'in memory': undefined,
  ...(hasRealService ? { 'of a real service': process.env.TEST_S3_ENDPOINT } : {})
}

describe.each(Object.entries(SERVICES))('a machine that dies, with a bucket %s', { timeout: 600_000 }, (_, onward) => {
  let service: FakeObjectService
  let dirs: string[]
  beforeEach(async () => {
    service = await new FakeObjectService(onward).start()
    dirs = []
  })
  afterEach(async () => {
    await service.stop()
    for (const dir of dirs) discard(dir)
  })

  async function prepared(): Promise<Place> {
    const { REDIS_URL: url, DEPLOYMENT: deployment } = await testRedisEnv()
    const dataDir = temporaryFolder()
    dirs.push(dataDir)
    const where = { redis: { url, deployment }, dataDir, cacheDir: join(dataDir, 'cache') }
    const place = { ...where, endpoint: service.endpoint, prefix: `killed-${randomUUID()}/`, sessionId: randomUUID() }
    await prepare(place)
    return place
  }

  // Checked: without the head of the dead owner, the files of a change that counts are missing.
  it.each([true, false])('loses nothing around the change of the head (made: %s)', async (isMade) => {
    let wasKilled = true
    for (let nth = 1; wasKilled; nth++) {
      const place = await prepared()
      const life = await live({ ...place, atSwap: { nth, isMade } })
      wasKilled = life.wasKilled
      for (const files of await foundAfter(place)) {
        const count = Number(files.count) + 1
        expect(count).toBeGreaterThan(life.acknowledged)
        // The change counts although nobody was told, or is as if it had never been.
        if (!isMade) expect(count).toBe(Math.max(life.acknowledged, 31) + 1)
        expect(files).toEqual(filesAfter(count))
      }
    }
  })

  it('loses nothing at any request of the collector, and the next one removes the rest', async () => {
    const place = await prepared()
    const objects = openTestObjects({ endpoint: service.endpoint })
    const { redis: { url, deployment } = { url: '', deployment: '' } } = place
    const store = await openRedisStore({ url, deployment, logger: silentLogger })
    await claimBucket(objects, place.prefix, store.sessions)
    await store.close()
    await live(place)
    const expected = filesAfter(CHANGES)
    const count = async () => {
      let sum = 0
      for (let from: string | undefined; ; ) {
        const { found, next } = await objects.list(`${place.prefix}sessions/`, from)
        sum += found.length
        from = next
        if (from === undefined) return sum
      }
    }
    const before = await count()
    let wasKilled = true
    let nth = 1
    // The first ones differ. Most of the others delete one object each.
    for (; wasKilled; nth += nth < 14 ? 1 : 6) {
      wasKilled = (await liveUntilRequest(service, { ...place, rounds: { from: 2 * nth, to: 2 * nth + 2 } }, nth))
        .wasKilled
      for (const files of await foundAfter(place)) expect(files).toEqual(expected)
    }
    expect(nth).toBeGreaterThan(10)
    await collect(place, { from: 2 * nth, to: 2 * nth + 2 })
    for (const files of await foundAfter(place)) expect(files).toEqual(expected)
    expect(await count()).toBeLessThan(before / 2)
    objects.close()
  })
})
