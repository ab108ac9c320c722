import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import type { Logger } from '../../lib/logger.ts'
import { ByteTail } from '../../lib/streams/byte-tail.ts'
import { parseHostileJson } from '../../lib/streams/hostile-json.ts'
import { LineReader, type OversizeLine } from '../../lib/streams/line-reader.ts'
import { readIncoming, type WireError } from './incoming-message.ts'
import type { WireIds } from './wire-ids.ts'

/** JSON-RPC error codes that we send on behalf of the sandbox. */
export const FILTER_ERROR = { resultTooLarge: -32050, answerUnreadable: -32051 } as const

const NOISE_TAIL_BYTES = 4 * 1024
const EXCERPT_BYTES = 1024
const OPEN_BRACE = 0x7b
const SPACE = 0x20
const PASSED_ON = new Set(['notifications/message', 'notifications/tools/list_changed'])

/** Log messages: what happened and what it means. What the sandbox wrote is logged at level debug only. */
const LOG_MESSAGES: Record<keyof FilterCounters, string> = {
  noise: 'A sandbox wrote something that is not an MCP message. It was ignored; the session goes on.',
  forged: 'A sandbox answered a request that nobody made. It was ignored; a command there may imitate the server.',
  refused: 'A sandbox sent a message that it may not send. It was ignored; the session goes on.',
  oversize: 'A sandbox sent a message over the size limit. It was dropped, and the call that waits for it fails.'
}

export interface FilterCounters {
  /** Lines that are not JSON-RPC. */
  noise: number
  /** Answers to requests that we did not send, and second answers. */
  forged: number
  /** Requests, and unknown notifications. */
  refused: number
  oversize: number
}

/**
 * Filters the bytes on a sandbox's stdout. Only answers to pending requests, their progress and a few notifications pass. The logger
 * must collapse repeated warnings, because a sandbox can send any number of wrong messages.
 */
export class MessageFilter {
  readonly counters: FilterCounters = { noise: 0, forged: 0, refused: 0, oversize: 0 }
  readonly #ids: WireIds
  readonly #lines: LineReader
  readonly #noise = new ByteTail(NOISE_TAIL_BYTES)
  readonly #logger: Logger
  readonly #isEnding: () => boolean
  #passed: JSONRPCMessage[] = []

  /** `isEnding`: we are ending this sandbox, so whatever comes from there now is no reason for a warning. */
  constructor(ids: WireIds, maxLineBytes: number, logger: Logger, isEnding = () => false) {
    this.#ids = ids
    this.#logger = logger
    this.#isEnding = isEnding
    this.#lines = new LineReader(maxLineBytes, {
      line: (bytes) => this.#onLine(bytes),
      oversize: (line) => this.#onOversize(line)
    })
  }

  push(bytes: Buffer): void {
    this.#lines.push(bytes)
  }

  /** The messages that have passed since the last call. */
  take(): JSONRPCMessage[] {
    const passed = this.#passed
    if (passed.length > 0) this.#passed = []
    return passed
  }

  /** The last part of what was not JSON-RPC. An engine writes there why it could not start the process. */
  noise(): string {
    return this.#noise.text()
  }

  /** `detail` is what the sandbox wrote. */
  #report(sentence: string, fields: Record<string, unknown>, detail?: string): void {
    if (this.#isEnding()) return
    const isDebug = this.#logger.isLevelEnabled('debug')
    this.#logger.warn({ ...fields, ...(isDebug && { detail }) }, sentence)
  }

  #onLine(bytes: Buffer): void {
    const first = bytes.find((byte) => byte > SPACE)
    if (first === undefined) return
    if (first !== OPEN_BRACE) {
      this.#onNoise(bytes)
      return
    }
    let value: unknown
    try {
      value = parseHostileJson(bytes)
    } catch {
      this.#onUnreadable(bytes)
      return
    }
    this.#onValue(value, bytes)
  }

  #onValue(value: unknown, bytes: Buffer): void {
    const incoming = readIncoming(value)
    if (incoming.kind === 'noise') this.#onNoise(bytes)
    else if (incoming.kind === 'request') this.#refuse(incoming.method)
    else if (incoming.kind === 'notification') this.#onNotification(incoming.method, incoming.params)
    else if (incoming.kind === 'error') this.#onAnswer(incoming.id, { error: incoming.error })
    else this.#onAnswer(incoming.id, { result: incoming.result })
  }

  #onAnswer(wireId: string, answer: { result: Record<string, unknown> } | { error: WireError }): void {
    const id = this.#ids.answered(wireId)
    if (id !== undefined) this.#passed.push({ jsonrpc: '2.0', id, ...answer })
    else if (!this.#ids.wasCancelled(wireId)) {
      this.counters.forged++
      this.#report(LOG_MESSAGES.forged, {})
    }
  }

  #onNotification(method: string, params: Record<string, unknown>): void {
    if (method === 'notifications/progress') {
      const progressToken = this.#ids.tokenOf(params.progressToken)
      if (progressToken === undefined) return
      this.#passed.push({ jsonrpc: '2.0', method, params: { ...params, progressToken } })
    } else if (PASSED_ON.has(method)) this.#passed.push({ jsonrpc: '2.0', method, params })
    else this.#refuse(method)
  }

  #refuse(method: string): void {
    this.counters.refused++
    this.#report(LOG_MESSAGES.refused, {}, method.slice(0, 100))
  }

  #onNoise(bytes: Buffer): void {
    this.counters.noise++
    this.#noise.push(bytes.subarray(0, NOISE_TAIL_BYTES))
    this.#noise.push(Buffer.from('\n'))
    this.#report(LOG_MESSAGES.noise, {}, bytes.toString('utf8', 0, 200))
  }

  /** The line looks like JSON but is invalid or nested too deeply: fail the waiting request at once. */
  #onUnreadable(bytes: Buffer): void {
    const wireId = this.#ids.findPending(bytes.subarray(0, EXCERPT_BYTES), bytes.subarray(-EXCERPT_BYTES))
    if (wireId === undefined) this.#onNoise(bytes)
    else this.#onAnswer(wireId, { error: { code: FILTER_ERROR.answerUnreadable, message: 'answer_unreadable' } })
  }

  #onOversize({ head, tail, bytes }: OversizeLine): void {
    this.counters.oversize++
    this.#report(LOG_MESSAGES.oversize, { bytes })
    if (head.find((byte) => byte > SPACE) !== OPEN_BRACE || this.#ids.isPastOrProgress(head, tail)) return
    const wireId = this.#ids.findPending(head, tail)
    const lost = wireId === undefined ? this.#ids.pending() : [wireId]
    const error = { code: FILTER_ERROR.resultTooLarge, message: 'result_too_large' }
    for (const each of lost) this.#onAnswer(each, { error })
  }
}
