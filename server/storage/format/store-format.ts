/**
 * Lets instances of two versions work on one store during an upgrade. Each instance announces the newest format that it can read. Invariant:
 * what is new in a format is written only while every living instance can read it; and a version that can't read what was written
 * does not start.
 */
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { KeyValueStore } from '../key-value-store.ts'
import type { SessionStore } from '../session-store.ts'

/**
 * 0: versions that announce nothing.
 * 1: logins to MCP servers can be in the store.
 * 2: an event log can have `history:restored`, which takes the number of a turn.
 */
const STORE_FORMAT = 2

const SPACE = 'store-format'
/** The newest format that something was written in. An instance id can't have this form. */
const WRITTEN = '*written'
const MAX_TRIES = 20

export interface StoreFormatOptions {
  keyValues: KeyValueStore
  sessions: Pick<SessionStore, 'instances'>
  /** Undefined for a process that is no instance. */
  instanceId?: string | undefined
  format?: number
}

export class StoreFormat {
  readonly #options: StoreFormatOptions
  readonly #format: number

  constructor(options: StoreFormatOptions) {
    this.#options = options
    this.#format = options.format ?? STORE_FORMAT
  }

  /** Call it before the first heartbeat. Throws `store_too_new` if this version can't read everything. */
  async announce(): Promise<void> {
    const { keyValues, sessions, instanceId } = this.#options
    const written = Number(await keyValues.get(SPACE, WRITTEN))
    if (written > this.#format) throw tooNew(written, this.#format)
    const living = await sessions.instances()
    for (const { key } of await keyValues.list(SPACE)) {
      if (key !== WRITTEN && !living.includes(key)) await keyValues.remove(SPACE, key)
    }
    if (instanceId !== undefined) await keyValues.set(SPACE, instanceId, { format: this.#format })
  }

  /** The newest format that all living instances can read. One that announced nothing is of an older version. */
  async agreed(): Promise<number> {
    const { keyValues, sessions, instanceId } = this.#options
    const rows = new Map((await keyValues.list(SPACE)).map(({ key, value }) => [key, value]))
    const formats = (await sessions.instances())
      .filter((id) => id !== instanceId)
      .map((id) => {
        const row = rows.get(id)
        return isRecord(row) ? Number(row.format) || 0 : 0
      })
    return Math.min(this.#format, ...formats)
  }

  /** Call it before something is written in this format. Returns false if an instance could not read it. */
  async mayWrite(format: number): Promise<boolean> {
    if ((await this.agreed()) < format) return false
    const { keyValues } = this.#options
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const written = await keyValues.get(SPACE, WRITTEN)
      if (Number(written) >= format) return true
      const isNoted = await (written === null
        ? keyValues.add(SPACE, WRITTEN, format)
        : keyValues.replace(SPACE, WRITTEN, written, format))
      // An older version that has started meanwhile may have looked before this.
      if (isNoted) return (await this.agreed()) >= format
    }
    return false
  }
}

function tooNew(written: number, known: number): AppError {
  const message = `A newer version of this program has written to this store (format ${written}; this version knows ${known}): update this instance.`
  return new AppError('unavailable', 'store_too_new', message)
}
