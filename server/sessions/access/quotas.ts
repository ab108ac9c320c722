/**
 * Limits for the stored files, conversations and sessions of one owner and of all owners together. They are checked before new
 * work. Finished work is kept, so a total may exceed its limit by what one call adds. Deleting sessions frees space.
 */
import { chatLogIds } from '../../code/run-log.ts'
import { AppError } from '../../lib/errors.ts'
import type { CheckpointStore } from '../../storage/checkpoint-store.ts'
import type { EventLog } from '../../storage/event-log.ts'
import type { SessionStore } from '../../storage/session-store.ts'
import type { SessionAccess } from './session-access.ts'

/** The settings with the limits. */
export interface QuotaLimits {
  MAX_OWNER_FILES_MB: number
  MAX_FILES_MB: number
  MAX_SESSION_LOG_MB: number
  MAX_OWNER_LOG_MB: number
  MAX_LOG_MB: number
  MAX_STORED_SESSIONS: number
}

export interface QuotaDeps {
  access: Pick<SessionAccess, 'siblings'>
  events: Pick<EventLog, 'bytes'>
  checkpoints: Pick<CheckpointStore, 'bytes'>
  store: Pick<SessionStore, 'count'>
}

/** Usage of all owners together; files and log in bytes. */
export interface QuotaUse {
  files: number
  log: number
  sessions: number
}

const MB = 1024 * 1024
/** Other instances write too, so measure the files again before refusing anything. */
const OWNER_MAX_AGE_MS = 10_000
const ALL_MAX_AGE_MS = 60_000
const REFUSAL_MAX_AGE_MS = 1000
/** For metrics: a scrape must be cheap, and measuring the files means reading every folder. */
const USE_MAX_AGE_MS = 60_000
const FILES_MAX_AGE_MS = 300_000

export class Quotas {
  readonly #deps: QuotaDeps
  readonly #limits: QuotaLimits
  #use: { at: number; value: Promise<QuotaUse> } | undefined

  constructor(deps: QuotaDeps, limits: QuotaLimits) {
    this.#deps = deps
    this.#limits = limits
  }

  get limits(): QuotaUse {
    const { MAX_FILES_MB, MAX_LOG_MB, MAX_STORED_SESSIONS } = this.#limits
    return { files: MAX_FILES_MB * MB, log: MAX_LOG_MB * MB, sessions: MAX_STORED_SESSIONS }
  }

  /** The current usage, at most a minute old. Concurrent callers share one measurement. */
  use(): Promise<QuotaUse> {
    const last = this.#use
    if (last && performance.now() - last.at < USE_MAX_AGE_MS) return last.value
    const { checkpoints, events, store } = this.#deps
    const parts = [checkpoints.bytes(undefined, FILES_MAX_AGE_MS), events.bytes(), store.count()] as const
    const value = Promise.all(parts).then(([files, log, sessions]) => ({ files, log, sessions }))
    const use = { at: performance.now(), value }
    this.#use = use
    value.catch(() => {
      if (this.#use === use) this.#use = undefined
    })
    return value
  }

  /** Throws if this session may not start new work. */
  async checkWork(sessionId: string): Promise<void> {
    const { access, events } = this.#deps
    const { MAX_SESSION_LOG_MB: sessionLogMb, MAX_OWNER_LOG_MB: ownerLogMb, MAX_LOG_MB: logMb } = this.#limits
    const { MAX_OWNER_FILES_MB: ownerFilesMb, MAX_FILES_MB: filesMb } = this.#limits
    if ((await events.bytes(chatLogIds([sessionId]))) >= sessionLogMb * MB) throw sessionLogFull(sessionLogMb)
    const own = await access.siblings(sessionId)
    if ((await events.bytes(chatLogIds(own))) >= ownerLogMb * MB) throw ownerFull('log', 'conversations', ownerLogMb)
    if (await this.#areFilesFull(ownerFilesMb, OWNER_MAX_AGE_MS, own)) throw ownerFull('files', 'files', ownerFilesMb)
    if ((await events.bytes()) >= logMb * MB) throw allFull('log', 'conversations', 'MAX_LOG_MB')
    if (await this.#areFilesFull(filesMb, ALL_MAX_AGE_MS)) throw allFull('files', 'files', 'MAX_FILES_MB')
  }

  /** Throws if nobody may open another session. */
  async checkOpen(): Promise<void> {
    const { MAX_STORED_SESSIONS: sessions } = this.#limits
    if ((await this.#deps.store.count()) < sessions) return
    const message = `This server has reached its limit of ${sessions} sessions; delete some, or ask its operator to raise MAX_STORED_SESSIONS.`
    throw new AppError('unavailable', 'too_many_stored_sessions', message)
  }

  async #areFilesFull(limitMb: number, maxAgeMs: number, sessionIds?: string[]): Promise<boolean> {
    const { checkpoints } = this.#deps
    if ((await checkpoints.bytes(sessionIds, maxAgeMs)) < limitMb * MB) return false
    return (await checkpoints.bytes(sessionIds, REFUSAL_MAX_AGE_MS)) >= limitMb * MB
  }
}

function sessionLogFull(limitMb: number): AppError {
  const message = `This conversation has reached its limit of ${limitMb} MB; continue in a new session. Nothing was lost.`
  return new AppError('unavailable', 'quota_session_log', message)
}

function ownerFull(what: 'log' | 'files', noun: string, limitMb: number): AppError {
  const message = `Your ${noun} have reached their limit of ${limitMb} MB; delete sessions to continue. Nothing was lost.`
  return new AppError('unavailable', `quota_owner_${what}`, message)
}

function allFull(what: 'log' | 'files', noun: string, setting: string): AppError {
  const message = `This server has no space for more ${noun}; delete sessions, or ask its operator to raise ${setting}. Nothing was lost.`
  return new AppError('unavailable', `quota_${what}`, message)
}
