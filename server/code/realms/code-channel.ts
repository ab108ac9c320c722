/**
 * Our end of the channel to a realm. Owns what is accepted from it: lines within the limits, with the token of this run, with calls
 * numbered in order. Everything else ends the run. Invariant: there is exactly one end, and nothing is accepted after it.
 */
import { randomBytes } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import {
  CODE_LIMITS,
  MAX_CODE_LINE_BYTES,
  OUR_ENDS,
  type RealmAnswer,
  type RealmInput
} from '../../../workspace-server/code/code-protocol.ts'
import { headOf } from '../../lib/cut-text.ts'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { parseHostileJson } from '../../lib/streams/hostile-json.ts'
import { LineReader } from '../../lib/streams/line-reader.ts'
import type { ProgramCall } from '../program-call.ts'

/** A process that runs one program. */
export interface RealmProcess {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Resolves with the reason when the process has ended; never rejects. */
  readonly exited: Promise<string>
  stop(): Promise<void>
}

export type ProgramEnd =
  | { ok: true; value: unknown }
  | { ok: false; code: string; message: string; line?: number | undefined }

export interface ChannelEvents {
  call(call: ProgramCall): void
  log(text: string): void
  progress(text: string): void
  end(end: ProgramEnd): void
}

/** The code of the error if a realm ends before its program begins. */
export const NEVER_READY = 'code_realm_failed'

const MAX_TOTAL_BYTES = 64 * 1024 * 1024
const MAX_NAME_CHARS = 500
const KINDS = new Set<unknown>(['tool', 'search', 'describe', 'sleep'])

export class CodeChannel {
  /** Resolves to the version of the realm; rejects if it ends first. */
  readonly ready: Promise<string>
  readonly #process: RealmProcess
  readonly #events: ChannelEvents
  readonly #token = randomBytes(24).toString('base64url')
  readonly #ready = Promise.withResolvers<string>()
  #isRunning = false
  #isOver = false
  #calls = 0
  #progressTexts = 0
  #logChars = 0
  #bytes = 0

  constructor(process: RealmProcess, events: ChannelEvents) {
    this.#process = process
    this.#events = events
    this.ready = this.#ready.promise
    this.ready.catch(() => {})
    const lines = new LineReader(MAX_CODE_LINE_BYTES, {
      line: (bytes) => this.#read(bytes),
      oversize: () => this.#break('a line that is too long')
    })
    process.stdout.on('data', (chunk: Buffer) => {
      this.#bytes += chunk.length
      if (this.#bytes > MAX_TOTAL_BYTES) this.#break('too much in all')
      else if (!this.#isOver) lines.push(chunk)
    })
    process.stdin.on('error', () => {})
    void process.exited.then((reason) => {
      const message = `The sandbox of the program ended before it was ready: ${headOf(reason, MAX_NAME_CHARS)}`
      this.#ready.reject(new AppError('unavailable', NEVER_READY, message))
      this.#end({ ok: false, code: 'code_realm_ended', message: `The sandbox of the program has ended: ${reason}` })
    })
  }

  /** How many calls the program has made. */
  get calls(): number {
    return this.#calls
  }

  run(program: { code: string; seed: number; now: number }): void {
    this.#isRunning = true
    this.#send({ type: 'run', token: this.#token, ...program })
  }

  answer(n: number, at: number, answer: RealmAnswer): void {
    if (!this.#isOver) this.#send({ type: 'answer', token: this.#token, n, at, ...answer })
  }

  /** Accepts nothing more. */
  close(): void {
    this.#isOver = true
  }

  #send(input: RealmInput): void {
    this.#process.stdin.write(`${JSON.stringify(input)}\n`)
  }

  #read(bytes: Buffer): void {
    if (this.#isOver) return
    let problem: string | undefined
    try {
      const message = parseHostileJson(bytes)
      if (!isRecord(message)) problem = 'a line that is no message'
      else problem = this.#isRunning ? this.#accept(message) : this.#acceptReady(message)
    } catch {
      problem = 'a line that is not JSON'
    }
    if (problem !== undefined) this.#break(problem)
  }

  #acceptReady({ type, runtime }: Record<string, unknown>): string | undefined {
    if (type !== 'ready' || typeof runtime !== 'string') return 'a message before its program'
    this.#ready.resolve(runtime.slice(0, 100))
    return undefined
  }

  /** Returns what is wrong with the message. */
  #accept(message: Record<string, unknown>): string | undefined {
    const { type, token, text, code, line, value } = message
    if (token !== this.#token) return 'a message without the token of this run'
    if (type === 'call') return this.#acceptCall(message)
    if (type === 'log' && typeof text === 'string') this.#acceptLog(text)
    else if (type === 'progress' && typeof text === 'string') {
      if (++this.#progressTexts <= CODE_LIMITS.progressTexts)
        this.#events.progress(headOf(text, CODE_LIMITS.progressChars))
    } else if (type === 'done' && typeof value === 'string') {
      if (value.length > CODE_LIMITS.valueChars) return 'a value that is too long'
      this.#end({ ok: true, value: parseHostileJson(Buffer.from(value)) })
    } else if (type === 'failed' && typeof code === 'string' && typeof message.message === 'string') {
      const text = headOf(message.message, CODE_LIMITS.errorChars)
      const claimed = OUR_ENDS.has(code) ? 'code_failed' : headOf(code, 100)
      this.#end({ ok: false, code: claimed, message: text, line: wholeNumber(line) })
    } else return 'a message of an unknown kind'
    return undefined
  }

  #acceptCall({ n, kind, server, tool, args, line }: Record<string, unknown>): string | undefined {
    if (n !== this.#calls + 1) return 'a call that is out of order'
    if (!isKind(kind) || !isName(server) || !isName(tool) || typeof args !== 'string') return 'a call that is not valid'
    if (args.length > CODE_LIMITS.argumentChars) return 'arguments that are too long'
    const parsed = parseHostileJson(Buffer.from(args))
    if (!isRecord(parsed)) return 'a call without arguments'
    this.#calls = n
    if (n <= CODE_LIMITS.stoppedAtCalls)
      this.#events.call({ n, kind, server, tool, args: parsed, line: wholeNumber(line) })
    else {
      const message = `The program made more than ${CODE_LIMITS.stoppedAtCalls} calls.`
      this.#end({ ok: false, code: 'code_too_many_calls', message })
    }
    return undefined
  }

  #acceptLog(text: string): void {
    const room = CODE_LIMITS.logChars + 1000 - this.#logChars
    this.#logChars += text.length + 1
    if (room > 0) this.#events.log(headOf(text, Math.min(room, CODE_LIMITS.logLineChars + 100)))
  }

  #break(what: string): void {
    const message = `The sandbox of the program sent ${what}. The run was stopped.`
    this.#end({ ok: false, code: 'code_channel_broken', message })
  }

  #end(end: ProgramEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#events.end(end)
  }
}

function isKind(kind: unknown): kind is ProgramCall['kind'] {
  return KINDS.has(kind)
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= MAX_NAME_CHARS
}

function wholeNumber(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}
