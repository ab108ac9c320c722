import { rmSync } from 'node:fs'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { PATIENCE_MS } from '../../../tests/support/patience-ms.ts'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { AppError } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/logger.ts'
import { openEmbeddedStore } from '../../storage/embedded/open-embedded-store.ts'
import type { EventLog, StoredEvent } from '../../storage/event-log.ts'
import { FakeContentStore } from '../../storage/fake-content-store.ts'
import type { Store } from '../../storage/store.ts'
import { UnansweredAppends } from '../feed/unanswered-appends.ts'
import { resultOf, SessionEvents } from './session-events.ts'

const ID = 'session'
const dir = temporaryFolder()
let store: Store
let epoch: number
let published: StoredEvent[]

beforeEach(async () => {
  store = await openEmbeddedStore({ dataDir: dir, logger: silentLogger })
  const taken = await store.sessions.acquire(ID, 'here', 60_000)
  epoch = taken.granted ? taken.record.epoch : 0
  published = []
})

afterEach(async () => {
  await store.close()
  rmSync(dir, { recursive: true, force: true })
})

/** The store is lost in the moment of its answer, `stored` says before or after it did its work. */
function faltering(stored: boolean): EventLog {
  let faults = 1
  return {
    ...store.events,
    read: (...input) => store.events.read(...input),
    lastSeq: (...input) => store.events.lastSeq(...input),
    async append(...input) {
      const isLost = faults-- > 0
      if (!isLost || stored) {
        const events = await store.events.append(...input)
        if (!isLost) return events
      }
      throw new AppError('unavailable', 'store_unavailable', 'The store is away.')
    }
  }
}

it.each([true, false])(
  'a result is stored once and told once (stored before the store was lost: %s)',
  async (stored) => {
    const publish = (_: string, events: StoredEvent[]) => published.push(...events)
    const log = faltering(stored)
    const appends = new UnansweredAppends({ events: log, publish, found: () => {}, logger: silentLogger })
    const checkpoints = new FakeContentStore()
    const deps = { events: log, ...appends.hooks, checkpoints, logger: silentLogger }
    const events = new SessionEvents(deps, ID)
    await events.appendResult(resultOf('call', { isError: false, content: [] }), epoch)
    const results = (await store.events.read(ID)).filter(({ type }) => type === 'tool:result')
    expect(results).toHaveLength(1)
    await vi.waitFor(() => expect(appends.waiting).toBe(0), { timeout: PATIENCE_MS, interval: 10 })
    expect(published).toEqual(results)
  }
)
