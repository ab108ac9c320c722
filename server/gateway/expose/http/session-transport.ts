import {
  type JSONRPCMessage,
  type RequestId,
  type TransportSendOptions,
  WebStandardStreamableHTTPServerTransport
} from '@modelcontextprotocol/server'
import { cancelledOf } from '../listen-filter.ts'
import type { FastAnswer } from './fast-answer.ts'

interface Running {
  answer: FastAnswer
  controller: AbortController
}

/** A session's transport. It also knows the calls that bypass the SDK: what a server asks or reports during one belongs to its answer. */
export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  readonly #running = new Map<RequestId, Running>()

  isRunning(id: RequestId): boolean {
    return this.#running.has(id)
  }

  /** Call it after the SDK has connected: it cancels only what it runs itself. */
  hearCancelled(): void {
    const deliver = this.onmessage
    this.onmessage = (message, extra) => {
      const running = this.#running.get(cancelledOf(message) as RequestId)
      if (running) running.controller.abort()
      else deliver?.(message, extra)
    }
  }

  /** Resolves to undefined if the client has cancelled the call. Rejects with the error for the client. */
  async run<T>(
    id: RequestId,
    answer: FastAnswer,
    gone: AbortSignal,
    job: (signal: AbortSignal) => Promise<T>
  ): Promise<T | undefined> {
    const controller = new AbortController()
    const leave = () => controller.abort()
    if (gone.aborted) leave()
    gone.addEventListener('abort', leave, { once: true })
    this.#running.set(id, { answer, controller })
    try {
      const result = await job(controller.signal)
      return controller.signal.aborted ? undefined : result
    } catch (error) {
      if (controller.signal.aborted) return undefined
      throw error
    } finally {
      gone.removeEventListener('abort', leave)
      this.#running.delete(id)
    }
  }

  override async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const id = options?.relatedRequestId
    const running = id === undefined ? undefined : this.#running.get(id)
    if (running) running.answer.tell(message)
    else await super.send(message, id === undefined ? {} : { relatedRequestId: id })
  }

  override async close(): Promise<void> {
    for (const { controller } of this.#running.values()) controller.abort()
    await super.close()
  }
}
