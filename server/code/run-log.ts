/**
 * The log of a run: its program, its calls, their results in the order in which the program got them, and decisions. Everything
 * about a run is computed from it. Invariant: an event with the same key is stored once, whoever else drives the same run, so a call
 * leaves at most once per number.
 */
import { canonicalJson } from '../lib/canonical-json.ts'
import { AppError, isAppError } from '../lib/errors.ts'
import type { WaitingPlace } from '../policy/waiting-places.ts'
import type { EventLog, NewEvent, StoredEvent } from '../storage/event-log.ts'
import type { CallOutcome, Decision, ProgramCall } from './program-call.ts'
import type { ProgramEnd } from './realms/code-channel.ts'

export interface Program {
  code: string
  hash: string
  seed: number
  startedAt: number
  timeoutMs: number
  /** In a chat: the call that runs it. */
  callId?: string
}

export type RunEnd = ProgramEnd | { ok: false; code: 'code_cancelled' | 'code_expired'; message: string }

/** A card that waits for a person. */
interface Asked {
  cardId: string
  hash: string
  place: WaitingPlace
}

interface CallState {
  call: ProgramCall
  /** How often it left. */
  starts: number
  asked?: Asked | undefined
  decisions: Decision[]
  done?: { outcome: CallOutcome; at: number }
}

export interface RunState {
  program: Program | undefined
  /** The version of the realm in which it began. */
  runtime: string | undefined
  calls: Map<number, CallState>
  /** The numbers of finished calls, in the order in which the program got the results. */
  order: number[]
  logs: string[]
  end: RunEnd | undefined
  endedAt: number | undefined
  /** When the last event was stored. */
  updatedAt: number | undefined
}

export type RunEvent =
  | { type: 'run:created'; data: Program }
  | { type: 'run:runtime'; data: { runtime: string } }
  | { type: 'run:asked'; data: { call: ProgramCall; asked: Asked } }
  | { type: 'run:decided'; data: { n: number; decision: Decision } }
  | { type: 'run:started'; data: { call: ProgramCall } }
  | { type: 'run:done'; data: { call: ProgramCall; outcome: CallOutcome } }
  | { type: 'run:output'; data: { lines: string[] } }
  | { type: 'run:ended'; data: { end: RunEnd } }

const PREFIX = 'code-run:'

function emptyRun(): RunState {
  return {
    ...{ program: undefined, runtime: undefined, end: undefined, endedAt: undefined, updatedAt: undefined },
    ...{ calls: new Map(), order: [], logs: [] }
  }
}

/** Adds an event to the state. */
function applyEvent(state: RunState, { type, data, at }: RunEvent & { at: number }): void {
  state.updatedAt = at
  if (type === 'run:created') state.program = data
  else if (type === 'run:runtime') state.runtime = data.runtime
  else if (type === 'run:output') for (const line of data.lines) state.logs.push(line)
  else if (type === 'run:ended') {
    state.end ??= data.end
    state.endedAt ??= at
  } else if (type === 'run:asked') callOf(state, data.call).asked = data.asked
  else if (type === 'run:started') callOf(state, data.call).starts++
  else if (type === 'run:done') {
    callOf(state, data.call).done = { outcome: data.outcome, at }
    state.order.push(data.call.n)
  } else {
    const call = state.calls.get(data.n)
    call?.decisions.push(data.decision)
    if (call) call.asked = undefined
  }
}

function callOf(state: RunState, call: ProgramCall): CallState {
  const known = state.calls.get(call.n) ?? { call, starts: 0, decisions: [] }
  state.calls.set(call.n, known)
  return known
}

/** Whether a program makes the same call again. The line is only shown. */
export function isSameCall(a: ProgramCall, b: ProgramCall): boolean {
  const [one, other] = [a, b].map(({ kind, server, tool, args }) => canonicalJson([kind, server, tool, args]))
  return one === other
}

export function describeCall({ kind, server, tool, args }: ProgramCall): string {
  const name = kind === 'tool' ? `${server}.${tool}` : [kind, server, tool].filter(Boolean).join(' ')
  return `${name}(${canonicalJson(args)})`
}

/** The log of one run, with its state so far. Appends in the order of the calls to it. */
export class RunLog {
  readonly runId: string
  readonly state: RunState
  readonly #events: EventLog
  #last: Promise<unknown> = Promise.resolve()
  /** The number of the last event in the state. */
  #seq: number
  #isAlone = true

  private constructor(events: EventLog, runId: string, state: RunState, seq = 0) {
    this.#events = events
    this.runId = runId
    this.state = state
    this.#seq = seq
  }

  /** False once somebody else has added events: another instance drives this run, or has ended it. */
  get isAlone(): boolean {
    return this.#isAlone
  }

  static async create(events: EventLog, runId: string, program: Program): Promise<RunLog> {
    const log = new RunLog(events, runId, emptyRun())
    await log.append([{ type: 'run:created', data: program }], ['created'])
    return log
  }

  /** From now on a run whose program was not stored never begins. Returns false if its program is stored. */
  static async forbid(events: EventLog, runId: string): Promise<boolean> {
    const end: RunEnd = { ok: false, code: 'code_cancelled', message: 'The run was never begun.' }
    try {
      // The key of the first event, so that a process that stood still can't add its program now.
      await events.append(PREFIX + runId, [{ type: 'run:ended', data: { end }, key: 'created' }])
      return true
    } catch (error) {
      if (!isAppError(error, 'event_exists')) throw error
      const [first] = await events.read(PREFIX + runId, { limit: 1 })
      return first?.type !== 'run:created'
    }
  }

  /** Throws `unknown_run` if there is no such log. */
  static async load(events: EventLog, runId: string): Promise<RunLog> {
    const state = emptyRun()
    let seq = 0
    for (;;) {
      const page = await events.read(PREFIX + runId, { after: seq })
      if (page.length === 0) break
      for (const event of page) applyEvent(state, asRunEvent(event))
      seq = page.at(-1)?.seq ?? seq
    }
    if (state.program === undefined) throw unknownRun(runId)
    return new RunLog(events, runId, state, seq)
  }

  /** Stores the events, then adds them to the state. Throws conflict `event_exists` if somebody else has stored one of the keys. */
  append(events: RunEvent[], keys: (string | undefined)[]): Promise<void> {
    const stored = this.#last.then(async () => {
      const keyed = events.map(({ type, data }, at): NewEvent => {
        const key = keys[at]
        return { type, data: { ...data }, ...(key === undefined ? {} : { key }) }
      })
      const added = await this.#events.append(PREFIX + this.runId, keyed)
      await this.#catchUp(added[0]?.seq ?? 0)
      this.#apply(added)
    })
    this.#last = stored.catch(() => {})
    return stored
  }

  /** Adds the events of others that were stored before this one. */
  async #catchUp(before: number): Promise<void> {
    while (this.#seq + 1 < before) {
      this.#isAlone = false
      const limit = before - 1 - this.#seq
      const page = await this.#events.read(PREFIX + this.runId, { after: this.#seq, limit })
      if (page.length === 0) return
      this.#apply(page)
    }
  }

  #apply(events: StoredEvent[]): void {
    for (const event of events) applyEvent(this.state, asRunEvent(event))
    this.#seq = events.at(-1)?.seq ?? this.#seq
  }

  /** Returns false if the run has already ended. The first end counts. */
  async end(end: RunEnd, lines: string[] = []): Promise<boolean> {
    const output: RunEvent[] = lines.length > 0 ? [{ type: 'run:output', data: { lines } }] : []
    const keys = [...output.map(() => undefined), 'ended']
    try {
      await this.append([...output, { type: 'run:ended', data: { end } }], keys)
      return true
    } catch (error) {
      if (isAppError(error, 'event_exists')) return false
      throw error
    }
  }

  /** Size of these logs. */
  static async bytes(events: EventLog, runIds: readonly string[]): Promise<number> {
    return runIds.length === 0 ? 0 : events.bytes(runIds.map((runId) => PREFIX + runId))
  }

  static async remove(events: EventLog, runId: string): Promise<void> {
    await events.remove(PREFIX + runId)
  }
}

/** The log is our own, and another version of the realm is refused before anything is replayed. */
function asRunEvent({ type, data, at }: StoredEvent): RunEvent & { at: number } {
  return { type, data, at } as RunEvent & { at: number }
}

/** A session runs one program at a time, so its log can be found and removed with the session. */
export function chatRunId(sessionId: string): string {
  return `chat-${sessionId}`
}

/** The log with the long outcome of a session's last program. */
export function keptOutcomeId(sessionId: string): string {
  return `code-outcome:${sessionId}`
}

/** Removes what the programs of a chat have left. */
export async function removeChatRun(events: EventLog, sessionId: string): Promise<void> {
  await RunLog.remove(events, chatRunId(sessionId))
  await events.remove(keptOutcomeId(sessionId))
}

/** The log of a chat's program counts in the size of the conversation. */
export function chatLogIds(sessionIds: readonly string[]): string[] {
  return sessionIds.flatMap((sessionId) => [sessionId, PREFIX + chatRunId(sessionId), keptOutcomeId(sessionId)])
}

export function unknownRun(runId: string): AppError {
  const message = `There is no run ${JSON.stringify(runId.slice(0, 100))} of yours. It may have been removed: a day after its end, or for newer runs.`
  return new AppError('not-found', 'unknown_run', message)
}
