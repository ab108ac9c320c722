/**
 * The logins of several instances, encrypted in the store that they share. Owns the rows, their lock and the change of the key.
 * Invariant: the store never has a token that can be read without the key from the settings.
 */
import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Sealer } from '../../lib/sealing.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import { fileLogins, type LoginStore, STALE_LOCK_MS } from './login-store.ts'

export interface SharedLoginsOptions {
  keyValues: KeyValueStore
  sealer: Sealer
  logger: Logger
  /** The folder that had the logins before; they are moved from there. */
  dir: string
  /** Whether all instances look for logins in the store. Until then they stay in the folder. */
  mayWrite?: () => Promise<boolean>
  staleMs?: number
}

export interface SharedLogins extends LoginStore {
  /** Number of logins that were encrypted with an unknown key. */
  readonly unreadable: number
  /** Looks for logins that other instances have stored or removed. */
  refresh(): Promise<void>
  close(): void
}

const SPACE = 'logins'
const LOCKS = 'login-locks'
const REFRESH_MS = 3000
const LOOK_AGAIN_MS = 100
const NAME = /^([0-9a-f]{32})\.json$/

export async function openSharedLogins(options: SharedLoginsOptions): Promise<SharedLogins> {
  const { keyValues, sealer, logger, dir, staleMs = STALE_LOCK_MS, mayWrite = async () => true } = options
  const files = fileLogins(dir)
  let isMoved = false
  let known = new Set<string>()
  let unreadable = 0
  const refresh = async () => {
    if (!isMoved && (await mayWrite())) {
      await sealAgain(options)
      await moveFiles(options)
      isMoved = true
    }
    const rows = await keyValues.list(SPACE)
    const readable = rows.filter(({ key, value }) => sealer.open(key, value) !== undefined)
    if (readable.length < rows.length && unreadable === 0) {
      logger.warn('Some logins were encrypted with another SECRETS_KEY: set it as SECRETS_KEY_BEFORE, or log in again.')
    }
    unreadable = rows.length - readable.length
    known = new Set(readable.map(({ key }) => key))
  }
  await refresh()
  const report = (error: unknown) => logger.debug(`Logins could not be looked for: ${messageOf(error)}`)
  const timer = setInterval(() => void refresh().catch(report), REFRESH_MS).unref()
  return {
    // An instance of an earlier version may still use the folder.
    has: (name) => known.has(name) || files.has(name),
    read: async (name) => sealer.open(name, await keyValues.get(SPACE, name)) ?? files.read(name),
    async write(name, text) {
      if (!isMoved) return files.write(name, text)
      await keyValues.set(SPACE, name, sealer.seal(name, text))
      known.add(name)
    },
    async remove(name) {
      const isThere = (await keyValues.get(SPACE, name)) !== null
      await keyValues.remove(SPACE, name)
      known.delete(name)
      return (await files.remove(name)) || isThere
    },
    locked: (name, job) => withStoreLock(keyValues, name, staleMs, job),
    get unreadable() {
      return unreadable
    },
    refresh,
    close: () => clearInterval(timer)
  }
}

/** After a change of the key, the rows get the new one. If two instances do it at once, one of them wins; both rows are the same. */
async function sealAgain({ keyValues, sealer }: SharedLoginsOptions): Promise<void> {
  for (const { key, value } of await keyValues.list(SPACE)) {
    const text = sealer.isCurrent(value) ? undefined : sealer.open(key, value)
    if (text !== undefined) await keyValues.replace(SPACE, key, value, sealer.seal(key, text))
  }
}

/** A file that stays would bring a login back that someone has removed from the store. */
async function moveFiles({ dir, keyValues, sealer, logger }: SharedLoginsOptions): Promise<void> {
  const files = fileLogins(dir)
  for (const file of listNames(dir)) {
    const [, name = ''] = NAME.exec(file) ?? []
    const text = name === '' ? undefined : await files.read(name)
    if (text === undefined) continue
    const isNew = await keyValues.add(SPACE, name, sealer.seal(name, text))
    await files.remove(name)
    logger.info(`A login was moved from ${dir} to the store${isNew ? '' : ', which had one already'}.`)
  }
}

function listNames(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}

/** The clocks of two machines differ, so a lock counts as left behind if it did not change while this process was looking at it. */
async function withStoreLock<T>(
  keyValues: KeyValueStore,
  name: string,
  staleMs: number,
  job: () => Promise<T>
): Promise<T> {
  const mine = randomUUID()
  const until = performance.now() + 2 * staleMs
  let seen: { holder: unknown; at: number } | undefined
  while (!(await keyValues.add(LOCKS, name, mine))) {
    const now = performance.now()
    if (now > until) {
      throw new AppError(
        'timeout',
        'deadline_exceeded',
        'Another instance has been refreshing this login for too long.'
      )
    }
    const holder = await keyValues.get(LOCKS, name)
    if (holder !== seen?.holder) seen = { holder, at: now }
    if (holder !== null && now - seen.at > staleMs && (await keyValues.replace(LOCKS, name, holder, mine))) break
    await delay(LOOK_AGAIN_MS)
  }
  try {
    return await job()
  } finally {
    if ((await keyValues.get(LOCKS, name)) === mine) await keyValues.remove(LOCKS, name)
  }
}
