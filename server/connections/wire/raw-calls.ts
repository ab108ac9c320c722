/**
 * `tools/call` without the SDK, which validates and copies every message several times: that costs more than the call itself, and
 * an answer that is passed on unchanged does not need it. The SDK handles everything else on the connection.
 */
import type { JSONRPCMessage, Progress } from '@modelcontextprotocol/client'
import { ProtocolError, SdkError, SdkErrorCode } from '@modelcontextprotocol/client'

export interface RawCallOptions {
  timeoutMs: number
  signal: AbortSignal
  onProgress?: ((progress: Progress) => void) | undefined
}

type Answer = Record<string, unknown>

interface Pending {
  resolve(result: Answer): void
  reject(error: Error): void
  signal: AbortSignal
  onAbort(): void
  onProgress: RawCallOptions['onProgress']
  timeoutMs: number
  /** In the time of `performance.now()`. */
  deadline: number
  /** Progress does not extend this one. */
  lastDeadline: number
}

/** Maximum time for a call, even if the server keeps reporting progress. */
const MAX_CALL_MS = 3_600_000

/** The limit for a call that reports progress; a longer `timeoutMs` wins. */
export function totalMs(timeoutMs: number): number {
  return Math.max(timeoutMs, MAX_CALL_MS)
}

export class RawCalls {
  readonly #send: (message: JSONRPCMessage) => void
  /** The SDK's own ids are numbers and `listen:…`, so these can't be confused with them. */
  readonly #pending = new Map<string, Pending>()
  #count = 0
  /** One timer for all calls, set for the earliest deadline; if it fires too early, it is set again. */
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY

  constructor(send: (message: JSONRPCMessage) => void) {
    this.#send = send
  }

  get size(): number {
    return this.#pending.size
  }

  ids(): string[] {
    return [...this.#pending.keys()]
  }

  call(params: Record<string, unknown>, options: RawCallOptions): Promise<Answer> {
    const { timeoutMs, signal, onProgress } = options
    const id = `call:${++this.#count}`
    return new Promise((resolve, reject) => {
      if (signal.aborted) throw new Error('Cancelled')
      const onAbort = () => this.#giveUp(id, new Error('Cancelled'))
      const now = performance.now()
      const deadline = now + timeoutMs
      const lastDeadline = now + totalMs(timeoutMs)
      this.#pending.set(id, { resolve, reject, signal, onAbort, onProgress, timeoutMs, deadline, lastDeadline })
      try {
        const meta = onProgress ? { _meta: { ...recordOf(params._meta), progressToken: id } } : undefined
        this.#send({ jsonrpc: '2.0', id, method: 'tools/call', params: meta ? { ...params, ...meta } : params })
      } catch (error) {
        this.#pending.delete(id)
        throw error
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#watch(deadline)
    })
  }

  /** Returns true if the message was for one of these calls. */
  take(message: JSONRPCMessage): boolean {
    if ('method' in message) return message.method === 'notifications/progress' && this.#progress(message.params)
    if (typeof message.id !== 'string' || !message.id.startsWith('call:')) return false
    const pending = this.#finish(message.id)
    // An answer that comes after we gave up is still not for the SDK.
    if (pending === undefined) return true
    if ('error' in message) pending.reject(readError(message.error))
    else pending.resolve(asResult(message.result))
    return true
  }

  postponeDeadlines(): void {
    for (const pending of this.#pending.values()) postpone(pending)
  }

  fail(error: Error): void {
    for (const id of this.ids()) this.#finish(id)?.reject(error)
  }

  #finish(id: string): Pending | undefined {
    const pending = this.#pending.get(id)
    if (pending === undefined) return undefined
    this.#pending.delete(id)
    pending.signal.removeEventListener('abort', pending.onAbort)
    return pending
  }

  #giveUp(id: string, error: Error): void {
    const pending = this.#finish(id)
    if (pending === undefined) return
    try {
      const params = { requestId: id, reason: error.message }
      this.#send({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
    } catch {
      // The server is gone, and the call with it.
    }
    pending.reject(error)
  }

  #watch(deadline: number): void {
    if (deadline >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = deadline
    // The connection keeps this process alive, not the deadline.
    this.#timer = setTimeout(() => this.#expire(), deadline - performance.now()).unref()
  }

  #expire(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = performance.now()
    for (const [id, { deadline }] of this.#pending) {
      if (deadline <= now) this.#giveUp(id, new SdkError(SdkErrorCode.RequestTimeout, 'Request timed out'))
    }
    const next = Math.min(...[...this.#pending.values()].map(({ deadline }) => deadline))
    if (this.#pending.size > 0) this.#watch(next)
  }

  #progress(params: unknown): boolean {
    const { progressToken, ...progress } = recordOf(params)
    if (typeof progressToken !== 'string' || !progressToken.startsWith('call:')) return false
    const pending = this.#pending.get(progressToken)
    // A server that reports progress is working: its deadline starts again.
    if (pending) postpone(pending)
    const { progress: done, total, message } = progress
    if (typeof done !== 'number') return true
    pending?.onProgress?.({
      progress: done,
      ...(typeof total === 'number' ? { total } : {}),
      ...(typeof message === 'string' ? { message } : {})
    })
    return true
  }
}

function postpone(pending: Pending): void {
  pending.deadline = Math.min(performance.now() + pending.timeoutMs, pending.lastDeadline)
}

/** In the older revisions a result has no type; what looks like a question of the new one would be asked in our name. */
function asResult(value: unknown): Answer {
  const result = recordOf(value)
  delete result.resultType
  return result
}

function readError(error: unknown): ProtocolError {
  const { code, message, data } = recordOf(error)
  // Not String(): it throws for {"toString": 0}, and nothing would catch that in this listener.
  const sentence = typeof message === 'string' ? message : 'Unknown error'
  return new ProtocolError(typeof code === 'number' ? code : -32603, sentence, data)
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
