/**
 * Limits for the stored logs of runs: of one run, of the runs of an owner, and of all. Owns no log. Invariants: a run begins, and a call
 * of it leaves, only below the limits; what a call has done is still recorded above them, so a total may exceed its limit by
 * what the calls under way add. Ended runs of the same owner make room for new ones.
 */
import { AppError } from '../lib/errors.ts'
import type { EventLog, NewEvent } from '../storage/event-log.ts'
import type { RunEntry, RunIndex } from './run-index.ts'
import { RunLog } from './run-log.ts'
import { LATE_MS } from './run-times.ts'

const MB = 1024 * 1024
/** The most runs that one owner can have open. */
const MAX_RUNS = 20
/** The part of the limits for conversations that programs get. A run of its own may be as large as a conversation. */
const PART = 4
/** A run is measured again after it has stored this much. */
const STEP_BYTES = 256 * 1024
/** Beyond a limit, results of calls that have left are kept up to this much more. Then the run ends. */
const SPARE_BYTES = 16 * MB

/** The settings with the limits. */
export interface RunLimits {
  MAX_SESSION_LOG_MB: number
  MAX_OWNER_LOG_MB: number
  MAX_LOG_MB: number
}

type Stored = { runId: string; entry: RunEntry }
type Reason = 'run' | 'owner' | 'all'

export class RunQuota {
  readonly #events: EventLog
  readonly #index: RunIndex
  readonly #limits: Record<Reason, number>

  constructor(events: EventLog, index: RunIndex, limits: RunLimits) {
    this.#events = events
    this.#index = index
    const { MAX_SESSION_LOG_MB: run, MAX_OWNER_LOG_MB: owner, MAX_LOG_MB: all } = limits
    this.#limits = { run: run * MB, owner: (owner * MB) / PART, all: (all * MB) / PART }
  }

  /**
   * Throws if this owner may not begin another run. Removes runs that ended `keepMs` ago, and ended runs of the owner, oldest first,
   * if that makes room.
   */
  async checkStart(owner: string, keepMs: number): Promise<void> {
    await this.#sweep(owner, keepMs)
    const ended = (await this.#index.list())
      .filter(({ entry }) => entry.owner === owner && entry.status === 'ended')
      .sort((a, b) => a.entry.endedAt - b.entry.endedAt)
    for (;;) {
      const excess = await this.#excess(owner)
      if (!excess) return
      const oldest = ended.shift()
      if (!oldest) throw full(excess)
      await RunLog.remove(this.#events, oldest.runId)
      await this.#index.remove(oldest.runId)
    }
  }

  async #sweep(owner: string, keepMs: number): Promise<void> {
    const now = Date.now()
    let open = 0
    for (const { runId, entry } of await this.#index.list()) {
      const isPast = entry.status === 'ended' ? entry.endedAt + keepMs <= now : entry.expiresAt + LATE_MS <= now
      if (isPast) {
        await RunLog.remove(this.#events, runId)
        await this.#index.remove(runId)
      } else if (entry.owner === owner && entry.status !== 'ended' && entry.expiresAt > now) open++
    }
    if (open < MAX_RUNS) return
    const message = `You already have ${open} runs that have not ended. Poll or cancel them first.`
    throw new AppError('unavailable', 'too_many_runs', message)
  }

  /** The log for one run, which refuses what is above the limits. */
  limited(runId: string, owner: string): EventLog {
    return limitedLog(this.#events, async () => {
      const reason = await this.#excess(owner, runId)
      return reason && full(reason)
    })
  }

  /** The limit that is reached. */
  async #excess(owner: string, runId?: string): Promise<Reason | undefined> {
    const stored = await this.#index.list()
    const sizeOf = (runs: Stored[]) =>
      RunLog.bytes(
        this.#events,
        runs.map((each) => each.runId)
      )
    const sizes: [Reason, number][] = [
      ['run', runId === undefined ? 0 : await RunLog.bytes(this.#events, [runId])],
      ['owner', await sizeOf(stored.filter(({ entry }) => entry.owner === owner))],
      ['all', await sizeOf(stored)]
    ]
    return sizes.find(([reason, size]) => size >= this.#limits[reason])?.[0]
  }
}

/** Events that only a program's own work adds. The others are needed to end a run. */
const ADDING = ['run:done', 'run:output']

/** A log of a run that lets no call leave if `measure` resolves to an error, and takes only a bounded number of results then. */
export function limitedLog(events: EventLog, measure: () => Promise<AppError | undefined>): EventLog {
  let unmeasured = 0
  let excess: AppError | undefined
  let spare = SPARE_BYTES
  const check = async (added: NewEvent[]) => {
    const bytes = JSON.stringify(added).length
    unmeasured += bytes
    if (unmeasured > STEP_BYTES || excess) {
      excess = await measure()
      unmeasured = 0
    }
    if (!excess) return
    spare -= bytes
    const isRefused = (type: string) => type === 'run:started' || (spare < 0 && ADDING.includes(type))
    if (added.some(({ type }) => isRefused(type))) throw excess
  }
  return {
    append: async (id, added, options) => {
      await check(added)
      return events.append(id, added, options)
    },
    read: (id, options) => events.read(id, options),
    lastSeq: (id) => events.lastSeq(id),
    bytes: (ids) => events.bytes(ids),
    remove: (id) => events.remove(id)
  }
}

const FULL: Record<Reason, [code: string, message: string]> = {
  run: ['quota_run_log', 'The log of this run has reached its limit: ask the tools for less, or split the program.'],
  owner: ['quota_owner_runs', 'The logs of your runs have reached their limit: cancel runs, or wait until they end.'],
  all: [
    'quota_runs',
    'This server has no space for more runs: try again later, or ask its operator to raise MAX_LOG_MB.'
  ]
}

function full(reason: Reason): AppError {
  return new AppError('unavailable', ...FULL[reason])
}
