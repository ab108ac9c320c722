import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { files as filesOf } from '../checkpoints/checkpoint-files.fixture.ts'
import { openEmbeddedStore } from '../embedded/open-embedded-store.ts'
import { FakeObjectService } from '../objects/fake-object-service.ts'
import { hasRealService } from '../objects/fake-object-store.ts'
import { CHANGES, checkpointsAt, filesAfter, type Place, prepare } from './killed-commits.fixture.ts'

interface Life {
  /** The last change that was said to be stored. */
  acknowledged: number
  wasKilled: boolean
}

/** Runs the changes in a process of its own, which dies when its nth request is done and not answered. */
async function changeUntilKilled(service: FakeObjectService, place: Place, nth: number): Promise<Life> {
  const script = join(import.meta.dirname, 'killed-commits.fixture.ts')
  const args = ['--disable-warning=ExperimentalWarning', script, JSON.stringify(place)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += String(chunk)
  })
  let requests = 0
  service.fault = () => {
    if (++requests < nth) return undefined
    child.kill('SIGKILL')
    return requests === nth ? 'lost' : 'cut'
  }
  const [, signal] = await once(child, 'close')
  service.fault = () => undefined
  const last = said.trim().split('\n').at(-1) ?? ''
  return { acknowledged: last === '' ? -1 : Number(last), wasKilled: signal === 'SIGKILL' }
}

/** Opens the files as the next owner, on the machine of the dead one and on another. */
async function foundAfter(place: Place): Promise<Record<string, string>[]> {
  const store = await openEmbeddedStore({ dataDir: place.dataDir, logger: silentLogger })
  try {
    const found: Record<string, string>[] = []
    for (const cacheDir of [place.cacheDir, join(place.dataDir, 'other-cache')]) {
      const known = await store.sessions.get(place.sessionId)
      if (known) await store.sessions.release(place.sessionId, known.epoch)
      const taken = await store.sessions.acquire(place.sessionId, randomUUID(), 60_000)
      if (!taken.granted) throw new Error('held')
      const checkpoint = await checkpointsAt({ ...place, cacheDir }, store).open(place.sessionId, taken.record.epoch)
      found.push(await filesOf(checkpoint))
      await checkpoint.close()
    }
    return found
  } finally {
    await store.close()
  }
}

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
        const life = await changeUntilKilled(service, place, nth)
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
