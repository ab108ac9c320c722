/** Instances that share nothing but a session store and a service of objects, for the tests of this folder. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { CheckpointStore } from '../checkpoint-store.ts'
import { LOST_ANSWER } from '../checkpoints/checkpoint-files.fixture.ts'
import { openEmbeddedStore } from '../embedded/open-embedded-store.ts'
import { FakeObjectService } from '../objects/fake-object-service.ts'
import { openTestObjects } from '../objects/fake-object-store.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import type { Store } from '../store.ts'
import { ObjectCache } from './object-cache.ts'
import { openObjectCheckpoints } from './open-object-checkpoints.ts'

const MB = 1024 * 1024

interface FixtureOptions {
  isReal?: boolean
  onward?: string | undefined
}

export class ObjectFixture {
  readonly dir = temporaryFolder()
  readonly service: FakeObjectService
  readonly prefix = `test-${randomUUID()}/`
  objects: ObjectStore
  readonly store: Store
  readonly #isReal: boolean
  readonly #swap: Store['heads']['swap']

  private constructor(store: Store, isReal: boolean, service: FakeObjectService) {
    this.store = store
    this.#swap = store.heads.swap
    this.#isReal = isReal
    this.service = service
    this.objects = openTestObjects({})
  }

  /** With `onward`, faults can be put before the real service at this address. */
  static async open({ isReal = false, onward }: FixtureOptions = {}): Promise<ObjectFixture> {
    const dataDir = temporaryFolder()
    const store = await openEmbeddedStore({ dataDir, logger: silentLogger })
    const fixture = new ObjectFixture(store, isReal, new FakeObjectService(onward))
    if (!isReal) {
      await fixture.service.start()
      fixture.objects = openTestObjects({ endpoint: fixture.service.endpoint })
    }
    return fixture
  }

  /** An instance with its own cache. */
  instance(maxCacheBytes = 64 * MB): CheckpointStore {
    const { objects, prefix, store } = this
    const logger = silentLogger
    const cache = new ObjectCache({ dir: join(this.dir, randomUUID()), maxBytes: maxCacheBytes, objects, logger })
    const history = { maxBytes: 64 * MB, keptMs: Number.POSITIVE_INFINITY }
    const shared = { heads: store.heads, sessions: store.sessions, keyValues: store.keyValues }
    return openObjectCheckpoints({ objects, prefix, cache, ...shared, logger, maxBytes: 256 * MB, history })
  }

  async takeOver(sessionId: string): Promise<number> {
    const known = await this.store.sessions.get(sessionId)
    if (known) await this.store.sessions.release(sessionId, known.epoch)
    const taken = await this.store.sessions.acquire(sessionId, randomUUID(), 60_000)
    if (!taken.granted) throw new Error('held')
    return taken.record.epoch
  }

  /** The session store does not answer the next change of a head, whether it makes the change or not. Undefined: it answers. */
  loseAnswer(isMade: boolean | undefined): void {
    const { heads } = this.store
    heads.swap = this.#swap
    if (isMade === undefined) return
    heads.swap = async (id, change) => {
      heads.swap = this.#swap
      if (isMade) await heads.swap(id, change)
      throw new Error(LOST_ANSWER)
    }
  }

  async dispose(): Promise<void> {
    await this.store.close()
    if (!this.#isReal) await this.service.stop()
    this.objects.close()
    discard(this.dir)
  }
}
