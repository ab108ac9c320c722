/**
 * The runs of outside clients as the store has them, whichever process drives them: lists them for a person, and ends them. Owns
 * neither leases nor realms. Invariant: after an end, nothing of the run waits for a person, and its process has let go of it or is gone.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ApprovalCard, ClientRun } from '../../contract/rest.ts'
import { isAppError } from '../lib/errors.ts'
import type { ApprovalInbox } from '../policy/approval-inbox.ts'
import type { EventLog } from '../storage/event-log.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { type RunEntry, RunIndex } from './run-index.ts'
import { RunLog, unknownRun } from './run-log.ts'
import { DEFAULT_TIMES, type RunTimes } from './run-times.ts'

const IDLE =
  'No process continues it now. It goes on when its client asks again, or when a process with its servers runs on this store.'

export interface StoredRunsOptions {
  events: EventLog
  keyValues: KeyValueStore
  inbox: Pick<ApprovalInbox, 'open' | 'take'>
  times?: Pick<RunTimes, 'leaseMs' | 'pollMs'>
}

type IsOwn = (owner: string) => boolean

export class StoredRuns {
  readonly #options: StoredRunsOptions
  readonly #index: RunIndex

  constructor(options: StoredRunsOptions) {
    this.#options = options
    this.#index = new RunIndex(options.keyValues)
  }

  /** Those that have not ended, oldest first. Reads no log: it may be large. */
  async list(isOwn: IsOwn): Promise<ClientRun[]> {
    const all = await this.#index.list()
    const own = all.filter(({ entry }) => entry.status !== 'ended' && isOwn(entry.owner))
    if (own.length === 0) return []
    const cards = Map.groupBy(await this.#options.inbox.open(), ({ code }) => code?.runId)
    return own
      .map(({ runId, entry }) => describeRun(runId, entry, cards.get(runId) ?? []))
      .sort((a, b) => a.startedAt - b.startedAt)
  }

  /** Throws `unknown_run` if it is not theirs. The first end counts. */
  async cancel(runId: string, isOwn: IsOwn): Promise<void> {
    const entry = await this.#index.get(runId)
    if (!entry || !isOwn(entry.owner)) throw unknownRun(runId)
    const log = await this.load(runId)
    if (!log) return
    await log.end({ ok: false, code: 'code_cancelled', message: 'The run was cancelled.' })
    await this.over(log)
    await this.letGo(runId)
  }

  /** Returns undefined if its process died before it stored the program. Such a run is ended: it never begins. */
  async load(runId: string, events = this.#options.events): Promise<RunLog | undefined> {
    try {
      return await RunLog.load(events, runId)
    } catch (error) {
      if (!isAppError(error, 'unknown_run') || !(await RunLog.forbid(events, runId))) throw error
      const ended = { status: 'ended', endedAt: Date.now(), leaseUntil: 0 } as const
      await this.#index.change(runId, ({ status }) => (status === 'ended' ? undefined : ended))
      return undefined
    }
  }

  /** Marks a run as ended and removes its cards. Its holder gives the lease back. */
  async over({ runId, state }: RunLog, instance?: string): Promise<void> {
    for (const { asked } of state.calls.values()) if (asked) await this.#options.inbox.take(asked.cardId, asked.place)
    await this.#index.change(runId, ({ status, holder }) => {
      const free = holder === instance ? { leaseUntil: 0 } : undefined
      return status === 'ended' ? free : { status: 'ended', endedAt: Date.now(), ...free }
    })
  }

  /** Waits until no other instance drives an ended run. It looks at the list often. */
  async letGo(runId: string, instance?: string): Promise<void> {
    const { leaseMs, pollMs } = this.#options.times ?? DEFAULT_TIMES
    const until = Date.now() + leaseMs
    for (;;) {
      const { holder, leaseUntil = 0 } = (await this.#index.get(runId)) ?? {}
      const now = Date.now()
      if (holder === instance || leaseUntil <= now || until <= now) return
      await delay(pollMs)
    }
  }
}

function describeRun(runId: string, entry: RunEntry, cards: ApprovalCard[]): ClientRun {
  const { client, door, createdAt, calls, head, leaseUntil } = entry
  const isHeld = entry.status === 'running' && leaseUntil > Date.now()
  const waiting = cards.length === 1 ? '1 call waits for approval.' : `${cards.length} calls wait for approval.`
  const reason = cards.length > 0 ? waiting : entry.reason || (isHeld ? '' : IDLE)
  return {
    ...{ runId, door, calls, head, startedAt: createdAt },
    ...(client === undefined ? {} : { client }),
    status: cards.length > 0 || entry.status === 'waiting' ? 'waiting' : 'running',
    ...(reason === '' ? {} : { reason }),
    expiresAt: Math.max(entry.expiresAt, ...cards.map(({ expiresAt }) => expiresAt))
  }
}
