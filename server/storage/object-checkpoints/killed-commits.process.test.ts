import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { FakeObjectService } from '../objects/fake-object-service.ts'
import { hasRealService } from '../objects/fake-object-store.ts'
import { CHANGES, filesAfter, foundAfter, liveUntilRequest, prepare } from './killed-commits.fixture.ts'

// Checked: if the head is changed before the upload, the next owner can't read what the head names.
const places = {
  'in memory': undefined,
  ...(hasRealService ? { 'of a real service': process.env.TEST_S3_ENDPOINT } : {})
}
it.each(Object.entries(places))(
  'a process that is killed at any request to a bucket %s loses no stored change',
  {
    timeout: 600_000
  },
  async (_, onward) => {
    const service = await new FakeObjectService(onward).start()
    let wasKilled = true
    try {
      for (let nth = 1; wasKilled; nth++) {
        const dataDir = temporaryFolder()
        const cacheDir = join(dataDir, 'cache')
        const { endpoint } = service
        const place = { dataDir, cacheDir, endpoint, prefix: 'killed/', sessionId: randomUUID() }
        await prepare(place)
        const life = await liveUntilRequest(service, place, nth)
        wasKilled = life.wasKilled
        for (const files of await foundAfter(place)) {
          const count = Number(files.count) + 1
          expect(count).toBeGreaterThan(life.acknowledged)
          expect(files).toEqual(filesAfter(count))
        }
        if (!wasKilled) expect(life.acknowledged).toBe(CHANGES - 1)
        discard(dataDir)
      }
    } finally {
      await service.stop()
    }
  }
)
