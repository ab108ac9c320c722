/**
 * A request from a client of the newer revision to a server of an older one: the server asks during the request, while the client
 * expects the question as the result and sends the request again with the answer. Owns the request between these rounds.
 */

import {
  isInputRequiredResult,
  type Progress,
  type ProgressCallback,
  ProtocolError,
  ProtocolErrorCode
} from '@modelcontextprotocol/server'
import type { PeerNotification, PeerRequest, RawResult } from '../../connections/wire/call-input.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { reachesLevel } from './log-level.ts'
import type { RequestContext, Scope } from './scope.ts'

interface Question {
  request: PeerRequest
  answer(response: RawResult): void
}

const PREFIX = 'held:'
const HOLD_MS = 600_000
const MAX_HELD = 1000

export class HeldCall implements Scope {
  readonly server: string
  readonly #abort = new AbortController()
  readonly #open = new Map<string, Question>()
  #context: RequestContext | undefined
  #isRoundOpen = false
  /** The newest report from the time between two rounds. */
  #lateProgress: Progress | undefined
  #questionAsked = Promise.withResolvers<void>()
  #result: Promise<RawResult> | undefined
  #count = 0

  constructor(server: string) {
    this.server = server
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Starts the job whose results and questions make up the rounds. */
  start(job: () => Promise<RawResult>): void {
    this.#result = job()
    this.#result.catch(() => {})
  }

  /** Runs one round: resolves to the server's result, or to its questions. */
  async round(context: RequestContext, tokenOf: () => string): Promise<RawResult> {
    const { inputResponses = {}, signal } = context.mcpReq
    this.#context = context
    this.#isRoundOpen = true
    if (this.#lateProgress) this.progress(this.#lateProgress)
    this.#lateProgress = undefined
    for (const [key, { answer }] of this.#open) {
      const response = inputResponses[key]
      if (typeof response !== 'object' || response === null) continue
      this.#open.delete(key)
      answer({ ...response })
    }
    const onAbort = () => this.end()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      if (this.#open.size === 0) {
        this.#questionAsked = Promise.withResolvers()
        const first = await Promise.race([this.#result, this.#questionAsked.promise])
        if (first !== undefined) return first
        // Questions that come together make one round.
        await new Promise((next) => setImmediate(next))
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#isRoundOpen = false
    }
    const inputRequests = Object.fromEntries([...this.#open].map(([key, { request }]) => [key, request]))
    return { resultType: 'input_required', inputRequests, requestState: tokenOf() }
  }

  ask(request: PeerRequest, signal: AbortSignal): Promise<RawResult> {
    const key = `question-${++this.#count}`
    const { promise, resolve, reject } = Promise.withResolvers<RawResult>()
    const forget = () => {
      this.#open.delete(key)
      reject(new ProtocolError(ProtocolErrorCode.InternalError, 'Nobody answered.'))
    }
    signal.addEventListener('abort', forget, { once: true })
    this.signal.addEventListener('abort', forget, { once: true })
    this.#open.set(key, { request, answer: resolve })
    this.#questionAsked.resolve()
    return promise
  }

  tell(notification: PeerNotification): void {
    const { mcpReq } = this.#context ?? {}
    if (notification.method === 'notifications/message' && !reachesLevel(notification.params, mcpReq?.envelope)) return
    mcpReq?.notify(notification).catch(() => {})
  }

  /** Every round is a separate request with its own progress token. While none is open, the newest report waits for the next. */
  readonly progress: ProgressCallback = (progress) => {
    if (!this.#isRoundOpen) this.#lateProgress = progress
    else if (this.#context) tellProgress(this.#context, progress)
  }

  end(): void {
    this.#abort.abort()
  }
}

export function tellProgress({ mcpReq: { _meta, notify }, onProgress }: RequestContext, progress: Progress): void {
  if (_meta?.progressToken === undefined) return
  if (onProgress) {
    onProgress(progress)
    return
  }
  const params = { ...progress, progressToken: _meta.progressToken }
  notify({ method: 'notifications/progress', params }).catch(() => {})
}

interface Held {
  call: HeldCall
  /** Hash of the request, so that the state can't be used with another one. */
  request: string
  timer: NodeJS.Timeout
}

/** The calls that wait for their client. Only in this process: another instance does not know them. */
export class HeldCalls {
  readonly #held = new BoundedMap<string, Held>(MAX_HELD, release)

  isOne(state: string | undefined): state is string {
    return state?.startsWith(PREFIX) === true
  }

  take(state: string, request: string): HeldCall {
    const held = this.#held.get(state)
    if (held === undefined || held.request !== request) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Invalid or expired requestState')
    }
    this.#held.delete(state)
    clearTimeout(held.timer)
    return held.call
  }

  async round(call: HeldCall, request: string, context: RequestContext): Promise<RawResult> {
    const result = await call.round(context, () => this.#hold(call, request))
    if (!isInputRequiredResult(result)) call.end()
    return result
  }

  close(): void {
    for (const held of this.#held.values()) release(held)
    this.#held.clear()
  }

  #hold(call: HeldCall, request: string): string {
    const state = `${PREFIX}${crypto.randomUUID()}`
    this.#held.set(state, { call, request, timer: setTimeout(() => this.#drop(state), HOLD_MS).unref() })
    return state
  }

  #drop(state: string): void {
    const held = this.#held.get(state)
    this.#held.delete(state)
    if (held) release(held)
  }
}

function release({ call, timer }: Held): void {
  clearTimeout(timer)
  call.end()
}
