/**
 * Knows whether the bucket can be used, so that `/readyz` answers at once: it looks every few seconds in the background, at once when a
 * request fails, and writes a small object if anything has failed before. One session that can't be saved proves nothing about the bucket.
 */
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import type { Operation } from '../lib/observed.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import type { Bucket } from '../storage/object-checkpoints/open-bucket.ts'
import { contentOf, type ObjectStore } from '../storage/objects/object-store.ts'
import type { Store } from '../storage/store.ts'

const CALM_EVERY_MS = 5000
const FAILING_EVERY_MS = 1000
const LOOK_WITHIN_MS = 6000
const PROBE = 'write-probe'
/** For people who open a session. Operators find the reason in the log and in `/readyz`. */
const REFUSED = 'The server has lost its session data and takes no new sessions for now. Ask its operator.'

type Report = (part: string, operation: Operation) => void

type WatchedBucket = Pick<Bucket, 'prefix' | 'claim'> & { objects: Pick<ObjectStore, 'probe' | 'put'> }

type WatchedStore = Pick<Store, 'sessions'>

export class BucketWatch {
  #bucket: WatchedBucket | undefined
  #store: WatchedStore | undefined
  /** The origin of the store that the bucket's files belong to. */
  #owner: string | undefined
  #failure: { error: unknown } | undefined
  /** Something has failed, and no write has succeeded since. */
  #isDoubtful = false
  /** The error of the last request that failed. */
  #lastError: unknown
  #looking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isStarted = false

  /** Notices failed requests, and passes each operation on. */
  before(report: Report = () => {}): Report {
    return (part, operation) => {
      if (part === 'objects' && operation.error !== undefined) this.#doubt(operation.error)
      report(part, operation)
    }
  }

  watch(bucket: WatchedBucket, store: WatchedStore): void {
    this.#bucket = bucket
    this.#store = store
  }

  /**
   * Throws `wrong_bucket` if the store was emptied, or is another one: a restarted instance would refuse the bucket, so nobody may put
   * new sessions there.
   */
  async checkOwner(): Promise<void> {
    try {
      await this.#checkOwner()
    } catch (error) {
      throw isAppError(error, 'wrong_bucket')
        ? new AppError('unavailable', error.code, REFUSED, { cause: error })
        : error
    }
  }

  async #checkOwner(): Promise<void> {
    if (!this.#bucket || !this.#store) return
    const { id } = await this.#store.sessions.origin()
    if (id === this.#owner) return
    await this.#bucket.claim(this.#store, false)
    this.#owner = id
  }

  start(): void {
    this.#isStarted = true
    void this.#look()
  }

  stop(): void {
    this.#isStarted = false
    clearTimeout(this.#timer)
  }

  /** Throws the error of the last check. Does not wait for a new one. */
  async check(): Promise<string> {
    if (!this.#isStarted) await this.#look()
    if (this.#failure) throw this.#failure.error
    return 'saved'
  }

  #doubt(why: unknown): void {
    this.#lastError = why
    if (this.#isDoubtful) return
    this.#isDoubtful = true
    if (this.#isStarted) void this.#look()
  }

  #look(): Promise<void> {
    clearTimeout(this.#timer)
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined
      if (!this.#isStarted) return
      const waitMs = this.#failure || this.#isDoubtful ? FAILING_EVERY_MS : CALM_EVERY_MS
      this.#timer = setTimeout(() => void this.#look(), waitMs).unref()
    })
    return this.#looking
  }

  async #lookOnce(): Promise<void> {
    const wasDoubtful = this.#isDoubtful
    try {
      await withDeadline({ what: 'the bucket', ms: LOOK_WITHIN_MS }, async () => {
        const { objects, prefix } = this.#bucket ?? {}
        await objects?.probe()
        await this.#checkOwner()
        if (wasDoubtful) await objects?.put(prefix + PROBE, contentOf(Buffer.from('ok')))
      })
      if (wasDoubtful) this.#isDoubtful = false
      this.#failure = undefined
    } catch (error) {
      this.#failure = { error: isAppError(error, 'deadline_exceeded') ? tooSlow(this.#lastError ?? error) : error }
      this.#isDoubtful = true
    }
  }
}

function tooSlow(why: unknown): AppError {
  return new AppError('unavailable', 'objects_unavailable', `The bucket did not answer in time (${messageOf(why)}).`)
}
