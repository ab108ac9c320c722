/**
 * The client's side of the stdio door. Owns framing and flow control, and the fast path for plain calls; everything else goes
 * through the SDK, which also negotiates the revision.
 */
import type { Readable, Writable } from 'node:stream'
import type { JSONRPCMessage, Progress, RequestId, Transport } from '@modelcontextprotocol/server'
import { AppError, messageOf } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { LineReader } from '../../lib/streams/line-reader.ts'
import { claimsModern, type FastCall, INTERNAL_ERROR, MODERN, outcomeOf, readFastCall } from './fast-path.ts'
import { oversizeRequestId } from './oversize-request.ts'

interface FastPath {
  /** Rejects with the error that the client gets. */
  call(
    call: FastCall,
    context: { signal: AbortSignal; onProgress?: (progress: Progress) => void }
  ): Promise<Record<string, unknown>>
  knows(call: FastCall): boolean
}

export interface StdioTransportOptions {
  /** Opens the input; a chunk is valid until `onChunk` returns. */
  input(onChunk: (chunk: Buffer) => void): Readable
  output: Writable
  fastPath: FastPath
  maxLineBytes?: number
  maxUnreadBytes?: number
}

const MAX_LINE_BYTES = 16 * 1024 * 1024
/** Limit for unread output; beyond it, messages that only inform are dropped. */
const MAX_UNREAD_BYTES = 32 * 1024 * 1024
const BUSY = 4
const MAX_IN_FLIGHT = 10_000
/** The requests of a longer batch are not answered one by one. */
const MAX_BATCH = 1000
const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600

export class StdioTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: ((message: JSONRPCMessage) => void) | undefined
  /** Resolves when the client is gone or the transport was closed. */
  readonly closed: Promise<void>

  readonly #options: StdioTransportOptions
  readonly #lines: LineReader
  readonly #running = new Map<RequestId, AbortController>()
  readonly #resolveClosed: () => void
  #input: Readable | undefined
  #outbox = ''
  #greeting: { id: RequestId; isModern: boolean } | undefined
  #mayBeFast = false
  #isModern = false
  #isWaiting = false
  #open = true

  constructor(options: StdioTransportOptions) {
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    this.#resolveClosed = resolve
    const limit = options.maxLineBytes ?? MAX_LINE_BYTES
    this.#lines = new LineReader(limit, {
      line: (bytes) => this.#onLine(bytes),
      oversize: (line) =>
        this.#refuse(`This message has ${line.bytes} bytes; the limit is ${limit}.`, oversizeRequestId(line))
    })
  }

  async start(): Promise<void> {
    const { output } = this.#options
    const input = this.#options.input((chunk) => this.#lines.push(chunk))
    this.#input = input
    input.on('error', () => this.#end())
    input.once('end', () => this.#end())
    input.once('close', () => this.#end())
    output.on('error', () => this.#end())
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!this.#open) throw new AppError('cancelled', 'client_gone', 'The client is gone.')
    const greeting = this.#greeting
    if (greeting && 'result' in message && message.id === greeting.id) this.#greeted(message.result, greeting.isModern)
    this.#post(message)
  }

  async close(): Promise<void> {
    this.#flush()
    this.#end()
  }

  #onLine(bytes: Buffer): void {
    if (!this.#open || bytes.length === 0) return
    let message: JSONRPCMessage
    try {
      message = JSON.parse(bytes.toString('utf8'))
    } catch {
      if (bytes.toString('utf8').trim() !== '') this.#refuse('The line is not valid JSON.')
      return
    }
    if (typeof message !== 'object' || message === null) {
      this.#refuse('The line is not a JSON-RPC message.')
      return
    }
    if (Array.isArray(message)) {
      this.#refuseBatch(message)
      return
    }
    try {
      if (!(this.#mayBeFast && this.#takeFastPath(message))) this.#passToSdk(message)
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(messageOf(error)))
    }
  }

  #passToSdk(message: JSONRPCMessage): void {
    if (!this.#mayBeFast && 'method' in message && 'id' in message) {
      const isModern = message.method !== 'initialize' && claimsModern(message.params)
      if (isModern || message.method === 'initialize') this.#greeting = { id: message.id, isModern }
    }
    this.onmessage?.(message)
  }

  /** The SDK has negotiated the revision: with `initialize`, or with the first message of the newer one. */
  #greeted({ protocolVersion }: Record<string, unknown>, isModern: boolean): void {
    this.#isModern = isModern
    this.#mayBeFast = isModern || (typeof protocolVersion === 'string' && protocolVersion < MODERN)
  }

  #takeFastPath(message: JSONRPCMessage): boolean {
    if ('method' in message && message.method === 'notifications/cancelled') {
      const controller = this.#running.get(message.params?.requestId as RequestId)
      controller?.abort()
      return controller !== undefined
    }
    const call = readFastCall(message)
    if (call === undefined || call.modern !== this.#isModern || !this.#options.fastPath.knows(call)) return false
    if (this.#running.has(call.id) || this.#running.size >= MAX_IN_FLIGHT) return false
    void this.#call(call)
    return true
  }

  async #call(call: FastCall): Promise<void> {
    const { id, progressToken } = call
    const controller = new AbortController()
    this.#running.set(id, controller)
    const answer = await outcomeOf(
      this.#options.fastPath.call(call, {
        signal: controller.signal,
        ...(progressToken === undefined
          ? {}
          : { onProgress: (progress) => this.#progress(id, progressToken, progress) })
      })
    )
    this.#running.delete(id)
    // A client that has cancelled expects no answer.
    if (!controller.signal.aborted) this.#post({ jsonrpc: '2.0', id, ...answer })
  }

  #progress(id: RequestId, progressToken: unknown, progress: Progress): void {
    if (!this.#running.has(id)) return
    this.#post({ jsonrpc: '2.0', method: 'notifications/progress', params: { ...progress, progressToken } })
  }

  /** Only the revision 2025-03-26 has batches. Answers each request in one, so that the client does not wait. */
  #refuseBatch(batch: unknown[]): void {
    const message = 'Batches are not supported: send each message on a line of its own.'
    const ids = batch.flatMap((each) =>
      isRecord(each) && typeof each.method === 'string' && isId(each.id) ? [each.id] : []
    )
    this.onerror?.(new Error(message))
    const error = { code: INVALID_REQUEST, message }
    if (ids.length === 0 || ids.length > MAX_BATCH) this.#post({ jsonrpc: '2.0', error })
    else for (const id of ids) this.#post({ jsonrpc: '2.0', id, error })
  }

  #refuse(message: string, id?: RequestId): void {
    this.onerror?.(new Error(message))
    if (id === undefined) this.#post({ jsonrpc: '2.0', error: { code: PARSE_ERROR, message } })
    else this.#post({ jsonrpc: '2.0', id, error: { code: INVALID_REQUEST, message } })
  }

  /** A single answer is written at once; under load, all answers of one event loop round are written together. */
  #post(message: JSONRPCMessage): void {
    if (!this.#open || (!('id' in message) && this.#isUnread())) return
    const line = toLine(message)
    if (this.#outbox === '' && this.#running.size === 0) {
      this.#write(line)
      return
    }
    if (this.#outbox === '') (this.#running.size > BUSY ? setImmediate : process.nextTick)(this.#flush)
    this.#outbox += line
  }

  readonly #flush = (): void => {
    const text = this.#outbox
    this.#outbox = ''
    if (text !== '' && this.#open) this.#write(text)
  }

  #write(text: string): void {
    const { output } = this.#options
    // While the client does not read, nothing is read from it.
    if (output.write(text) || this.#isWaiting) return
    this.#isWaiting = true
    this.#input?.pause()
    output.once('drain', () => {
      this.#isWaiting = false
      this.#input?.resume()
    })
  }

  /** Servers send messages on their own, so pausing the input does not stop them. */
  #isUnread(): boolean {
    const { output, maxUnreadBytes = MAX_UNREAD_BYTES } = this.#options
    return output.writableLength + this.#outbox.length > maxUnreadBytes
  }

  #end(): void {
    if (!this.#open) return
    this.#open = false
    for (const controller of this.#running.values()) controller.abort()
    this.#running.clear()
    this.#input?.pause()
    this.onclose?.()
    this.#resolveClosed()
  }
}

function isId(id: unknown): id is RequestId {
  return typeof id === 'string' || typeof id === 'number'
}

/** Answers even if the message can't be serialized: the client waits, and nobody here would catch the error. */
function toLine(message: JSONRPCMessage): string {
  try {
    return `${JSON.stringify(message)}\n`
  } catch (error) {
    if (!('result' in message)) throw error
    const reason = `The answer can't be written: ${messageOf(error).slice(0, 100)}.`
    return `${JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: INTERNAL_ERROR, message: reason } })}\n`
  }
}
