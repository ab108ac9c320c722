/**
 * `tools/call` without the SDK's machinery: it validates and copies every message several times over, which costs more than the
 * call itself, and an answer that is passed on unchanged needs none of it. Everything else on the connection stays the SDK's.
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
  timer: NodeJS.Timeout
  onProgress: RawCallOptions['onProgress']
}

export class RawCalls {
  readonly #send: (message: JSONRPCMessage) => void
  /** The SDK's own ids are numbers and `listen:…`, so these are never mistaken for them. */
  readonly #pending = new Map<string, Pending>()
  #count = 0

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
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const giveUp = (error: Error) => {
      if (!this.#pending.delete(id)) return
      clearTimeout(timer)
      try {
        this.#send({
          jsonrpc: '2.0',
          method: 'notifications/cancelled',
          params: { requestId: id, reason: error.message }
        })
      } catch {
        // It is gone, and so is the call.
      }
      reject(error)
    }
    const timer = setTimeout(() => giveUp(new SdkError(SdkErrorCode.RequestTimeout, 'Request timed out')), timeoutMs)
    const onAbort = () => giveUp(new Error('Cancelled'))
    const forget = () => signal.removeEventListener('abort', onAbort)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#pending.set(id, {
      timer,
      onProgress,
      resolve: (result) => {
        forget()
        resolve(result)
      },
      reject: (error) => {
        forget()
        reject(error)
      }
    })
    try {
      if (signal.aborted) throw new Error('Cancelled')
      const meta = onProgress ? { _meta: { ...recordOf(params._meta), progressToken: id } } : {}
      this.#send({ jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, ...meta } })
    } catch (error) {
      this.#pending.delete(id)
      clearTimeout(timer)
      forget()
      reject(error)
    }
    return promise
  }

  /** True when the message was for one of these calls. */
  take(message: JSONRPCMessage): boolean {
    if ('method' in message) return message.method === 'notifications/progress' && this.#progress(message.params)
    if (typeof message.id !== 'string' || !message.id.startsWith('call:')) return false
    const pending = this.#pending.get(message.id)
    // An answer after we gave up is still not the SDK's.
    if (pending === undefined) return true
    this.#pending.delete(message.id)
    clearTimeout(pending.timer)
    if ('error' in message) pending.reject(readError(message.error))
    else pending.resolve(recordOf(message.result))
    return true
  }

  postponeDeadlines(): void {
    for (const { timer } of this.#pending.values()) timer.refresh()
  }

  fail(error: Error): void {
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer)
      pending.reject(error)
    }
    this.#pending.clear()
  }

  #progress(params: unknown): boolean {
    const { progressToken, ...progress } = recordOf(params)
    if (typeof progressToken !== 'string' || !progressToken.startsWith('call:')) return false
    const pending = this.#pending.get(progressToken)
    // A server that reports progress is at work: its time begins anew.
    pending?.timer.refresh()
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

function readError(error: unknown): ProtocolError {
  const { code, message, data } = recordOf(error)
  return new ProtocolError(typeof code === 'number' ? code : -32603, String(message ?? 'Unknown error'), data)
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
