/**
 * An MCP transport over a child's stdin and stdout. Owns framing and flow control; knows only the streams of the process.
 * Invariant: whatever the child writes, memory stays bounded, and a message that `send` rejected has not reached the child.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { type JSONRPCMessage, SdkError, SdkErrorCode, type Transport } from '@modelcontextprotocol/client'
import { AppError, messageOf } from '../../lib/errors.ts'
import { parseHostileJson } from '../../lib/streams/hostile-json.ts'
import { LineReader, type OversizeLine } from '../../lib/streams/line-reader.ts'
import { MAX_LINE_BYTES, RESULT_TOO_LARGE } from '../wire/answer-limits.ts'
import { RawCalls } from '../wire/raw-calls.ts'
import type { Child } from './child.ts'
import { isDoomed } from './is-doomed.ts'

const MAX_QUEUED_BYTES = 32 * 1024 * 1024
/** A child that writes this much without a single message is not an MCP server. */
const MAX_NOISE_BYTES = 32 * 1024 * 1024
const BUSY = 4
const LAST_WORDS_MS = 100
const OPEN_BRACE = 0x7b
const SPACE = 0x20

export interface ChildTransportOptions {
  onNoise(line: string): void
  maxLineBytes?: number
}

export class ChildTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: ((message: JSONRPCMessage) => void) | undefined
  /** These two tell the SDK that it talks to a process: silence then means an old server, not an outage. */
  readonly stderr = null
  /** Why it ended, once it has. */
  reason: string | undefined

  readonly #child: Child
  readonly #options: ChildTransportOptions
  readonly #lines: LineReader
  readonly #pending = new Set<string | number>()
  /** Calls bypass the SDK. */
  readonly calls = new RawCalls((message) => this.#post(message))
  /** Answers that follow a notification, held back until the next round of the event loop. */
  #held: JSONRPCMessage[] | undefined
  #outbox = ''
  readonly #drained = Promise.withResolvers<void>()
  #noiseBytes = 0
  #open = true
  /** Its output has ended, so no more answers can come. */
  #leaving = false

  constructor(child: Child, options: ChildTransportOptions) {
    this.#child = child
    this.#options = options
    this.#lines = new LineReader(options.maxLineBytes ?? MAX_LINE_BYTES, {
      line: (bytes) => this.#onLine(bytes),
      oversize: (line) => this.#onOversize(line)
    })
    void this.#follow()
  }

  get pid(): number {
    return this.#child.pid
  }

  /** False once the child is leaving: new calls need the next process, not three refusals by this one. */
  get isOpen(): boolean {
    return this.#open && !this.#leaving
  }

  async start(): Promise<void> {
    const { stdout } = this.#child
    stdout.on('data', (chunk: Buffer) => this.#lines.push(chunk))
    stdout.on('error', () => {})
    stdout.once('end', () => {
      this.#leaving = true
      this.#drained.resolve()
    })
  }

  /** With `mustNotRepeat`, a process that was killed but not yet reaped counts as closed. */
  assertAlive(mustNotRepeat: boolean): void {
    if (this.#open && mustNotRepeat && this.pid > 0 && isDoomed(this.pid)) this.#end('it was killed')
    if (!this.#open || this.#leaving) throw notSent(this.reason)
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if ('id' in message && 'method' in message && message.id !== undefined) this.#pending.add(message.id)
    this.#post(message)
  }

  /** A single call is written at once; under load, all messages of one event loop round are written together. */
  #post(message: JSONRPCMessage): void {
    if (!this.#open || this.#leaving) throw notSent(this.reason)
    const queued = this.#child.stdin.writableLength + this.#outbox.length
    if (queued > MAX_QUEUED_BYTES) throw notSent('it takes in nothing more')
    const line = `${JSON.stringify(message)}\n`
    if (this.#outbox === '' && this.calls.size <= 1) {
      this.#child.stdin.write(line)
      return
    }
    if (this.#outbox === '') (this.calls.size > BUSY ? setImmediate : process.nextTick)(this.#flush)
    this.#outbox += line
  }

  readonly #flush = (): void => {
    const text = this.#outbox
    this.#outbox = ''
    if (this.#open) this.#child.stdin.write(text)
  }

  async close(): Promise<void> {
    this.#end('it was stopped')
    await this.#child.stop()
  }

  /** The process and its output end in either order: read the last answer and the exit code before closing. */
  async #follow(): Promise<void> {
    const { exited } = this.#child
    await Promise.race([exited, this.#drained.promise])
    const soon = delay(LAST_WORDS_MS, undefined, { ref: false })
    const [reason] = await Promise.all([
      Promise.race([exited, soon.then(() => 'it closed its output')]),
      Promise.race([this.#drained.promise, soon])
    ])
    this.#end(reason)
    // A process that closed its output but lives on must be stopped.
    await this.#child.stop().catch(() => {})
  }

  #onLine(bytes: Buffer): void {
    if (!this.#open) return
    const first = firstVisible(bytes)
    if (first === undefined) return
    const message = first === OPEN_BRACE ? this.#parse(bytes) : undefined
    if (message === undefined) {
      this.#onNoise(bytes.length, bytes)
      return
    }
    this.#noiseBytes = 0
    if (!('method' in message) && message.id !== undefined) this.#pending.delete(message.id)
    if (!this.calls.take(message)) this.#deliver(message)
  }

  /** The SDK handles notifications a moment later but answers at once, so an answer could overtake the progress before it. */
  #deliver(message: JSONRPCMessage): void {
    if (!('method' in message) && this.#held) {
      this.#held.push(message)
      return
    }
    if (!this.#held && 'method' in message && !('id' in message)) {
      this.#held = []
      setImmediate(this.#release)
    }
    this.#hand(message)
  }

  readonly #release = (): void => {
    const held = this.#held ?? []
    this.#held = undefined
    for (const message of held) this.#hand(message)
  }

  #hand(message: JSONRPCMessage): void {
    try {
      this.onmessage?.(message)
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(messageOf(error)))
    }
  }

  #parse(bytes: Buffer): JSONRPCMessage | undefined {
    try {
      const value = parseHostileJson(bytes)
      const isMessage = typeof value === 'object' && value !== null && 'jsonrpc' in value && value.jsonrpc === '2.0'
      // The SDK checks the rest, for each kind of message.
      return isMessage ? (value as JSONRPCMessage) : undefined
    } catch {
      return undefined
    }
  }

  #onNoise(length: number, excerpt: Buffer): void {
    this.#noiseBytes += length
    this.#options.onNoise(excerpt.toString('utf8', 0, 200))
    if (this.#noiseBytes > MAX_NOISE_BYTES) this.#expel('it floods its output with text that is not a message')
  }

  /** Only the two ends of the line are left: usually enough to find the call that it answers. */
  #onOversize({ head, tail, bytes }: OversizeLine): void {
    if (firstVisible(head) !== OPEN_BRACE) {
      this.#onNoise(bytes, head)
      return
    }
    const id = /"id"\s*:\s*(?:"([^"]{1,100})"|(\d{1,15}))/.exec(`${head.toString('latin1')} ${tail.toString('latin1')}`)
    const named = id === null ? undefined : (id[1] ?? Number(id[2]))
    const pending = [...this.#pending, ...this.calls.ids()]
    const lost = named !== undefined && pending.includes(named) ? [named] : pending
    for (const id of lost) {
      this.#pending.delete(id)
      const answer = { jsonrpc: '2.0' as const, id, error: { code: RESULT_TOO_LARGE, message: 'result_too_large' } }
      if (!this.calls.take(answer)) this.#deliver(answer)
    }
  }

  #expel(reason: string): void {
    this.#end(reason)
    void this.#child.stop(0)
  }

  #end(reason: string): void {
    if (!this.#open) return
    this.#open = false
    this.reason = reason
    this.#release()
    this.#pending.clear()
    this.calls.fail(new SdkError(SdkErrorCode.ConnectionClosed, reason))
    this.#child.stdout.resume()
    this.onclose?.()
  }
}

function firstVisible(bytes: Buffer): number | undefined {
  const first = bytes[0]
  return first !== undefined && first > SPACE ? first : bytes.find((byte) => byte > SPACE)
}

/** `sent: false`: the request has not reached the server, so it certainly had no effect. */
function notSent(reason: string | undefined): AppError {
  const message = `The server has stopped: ${reason ?? 'the connection has ended'}.`
  return new AppError('unavailable', 'child_lost', message, { details: { sent: false } })
}
