/**
 * The output, messages and questions of running calls. Output, progress and log messages are published; a question is an event of the log,
 * and so is its answer, which may come through another instance. Invariant: a call gets an answer at most once per question.
 */
import type { ServerLogLine } from '../../../contract/events.ts'
import type { ServerToClient } from '../../../contract/live.ts'
import { answerContent, type Question } from '../../../contract/questions/questions.ts'
import { callOf, type Transcript } from '../../../contract/transcript.ts'
import type { Answer, CallTalk } from '../../calls/call-talk.ts'
import { AppError } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import type { LiveName } from '../feed/session-feed.ts'
import type { ChatDeps } from './chat-options.ts'
import { RunningOutputs } from './live-turn.ts'
import type { RunInput } from './toolbox.ts'

type Progress = Parameters<ServerToClient['tool:progress']>[0]

interface Waiting {
  callId: string
  id: string
  resolve(answer: Answer): void
}

/** The person may be away. */
const QUESTION_MS = 600_000
const MAX_QUESTIONS = 20
const MAX_LINES = 200
const MAX_LOG_CHARS = 32 * 1024
const PUBLISH_MS = 100

export class CallTalks {
  readonly #deps: Pick<ChatDeps, 'events' | 'live'>
  readonly #sessionId: string
  readonly #wake: () => void
  readonly #waiting = new Set<Waiting>()
  readonly #progress = new Map<string, Progress>()
  readonly #logs = new Map<string, CallLog>()
  readonly #outputs = new RunningOutputs()

  /** `wake` is called after an event was stored that the driver should look at. */
  constructor(deps: Pick<ChatDeps, 'events' | 'live'>, sessionId: string, wake: () => void) {
    this.#deps = deps
    this.#sessionId = sessionId
    this.#wake = wake
  }

  #live<T extends LiveName>(type: T, data: Parameters<ServerToClient[T]>[0]): void {
    this.#deps.live(this.#sessionId, type, data)
  }

  begin(callId: string, append: (events: NewEvent[]) => Promise<void>): Pick<RunInput, 'onOutput' | 'talk'> {
    const onOutput: RunInput['onOutput'] = (chunk) => {
      const at = this.#outputs.push(callId, chunk)
      this.#live('tool:output', { callId, ...chunk, at })
    }
    return { onOutput, talk: this.#talk(callId, append) }
  }

  #talk(callId: string, append: (events: NewEvent[]) => Promise<void>): CallTalk {
    const log = new CallLog((lines) => this.#live('tool:log', { callId, lines }))
    this.#logs.set(callId, log)
    let asked = 0
    return {
      progress: ({ progress, total, message }) => {
        if (!this.#logs.has(callId)) return
        const report = { callId, progress, ...(total !== undefined && { total }), ...(message && { message }) }
        this.#progress.set(callId, report)
        this.#live('tool:progress', report)
      },
      log: (line) => log.push(line),
      logged: () => log.lines,
      ask: (question, signal) => {
        asked++
        if (asked > MAX_QUESTIONS)
          throw new AppError('invalid', 'invalid_question', `A call may ask at most ${MAX_QUESTIONS} questions.`)
        return this.#ask({ callId, id: `q${asked}`, question, append }, signal)
      }
    }
  }

  end(callId: string): void {
    this.#logs.get(callId)?.close()
    this.#logs.delete(callId)
    this.#progress.delete(callId)
    this.#outputs.end(callId)
  }

  /** For clients that have just connected. Questions are in the snapshot. */
  retell(): void {
    for (const output of this.#outputs.all()) this.#live('tool:output_so_far', output)
    for (const report of this.#progress.values()) this.#live('tool:progress', report)
    for (const [callId, { lines }] of this.#logs)
      if (lines.length > 0) this.#live('tool:log', { callId, lines, isWhole: true })
  }

  /** Passes on the answers that are in the log by now. */
  async settle(transcript: Transcript): Promise<void> {
    for (const waiting of this.#waiting) {
      const question = callOf(transcript, waiting.callId)?.questions?.find(({ id }) => id === waiting.id)
      if (!question?.answer) continue
      this.#waiting.delete(waiting)
      const { action, seq } = question.answer
      const [event] = await this.#deps.events.read(this.#sessionId, { after: seq - 1 })
      const values = event?.seq === seq ? answerContent.safeParse(event.data.values).data : undefined
      waiting.resolve({ action, ...(values && { values }) })
    }
  }

  async #ask(asking: Asking, signal: AbortSignal): Promise<Answer> {
    const { callId, id, question, append } = asking
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const waiting = { callId, id, resolve }
    const onAbort = () => reject(new AppError('cancelled', 'cancelled', 'The call has ended.'))
    signal.addEventListener('abort', onAbort, { once: true })
    const timer = setTimeout(() => void this.#expire(asking), QUESTION_MS)
    this.#waiting.add(waiting)
    try {
      signal.throwIfAborted()
      const data = { callId, id, ...question, expiresAt: Date.now() + QUESTION_MS }
      await append([{ type: 'tool:question', data, key: `question:${callId}:${id}` }])
      return await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      this.#waiting.delete(waiting)
    }
  }

  async #expire({ callId, id, append }: Asking): Promise<void> {
    await append([answerOf({ callId, id, action: 'cancel', by: 'deadline' })]).catch(() => {})
    this.#wake()
  }
}

interface Asking {
  callId: string
  id: string
  question: Question
  append(events: NewEvent[]): Promise<void>
}

/** A question has one answer: the first one counts. */
export function answerOf(data: { callId: string; id: string } & Record<string, unknown>): NewEvent {
  return { type: 'tool:question_answered', data, key: `answer:${data.callId}:${data.id}` }
}

/** The end of a call's log messages. They are published in groups, because a server may write thousands. */
class CallLog {
  readonly #publish: (lines: ServerLogLine[]) => void
  lines: ServerLogLine[] = []
  #unpublished: ServerLogLine[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(publish: (lines: ServerLogLine[]) => void) {
    this.#publish = publish
  }

  push(line: ServerLogLine): void {
    if (this.#isClosed) return
    this.lines = bounded([...this.lines, line])
    this.#unpublished = bounded([...this.#unpublished, line])
    this.#timer ??= setTimeout(() => this.#flush(), PUBLISH_MS).unref()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #flush(): void {
    this.#timer = undefined
    this.#publish(this.#unpublished)
    this.#unpublished = []
  }
}

function bounded(lines: ServerLogLine[]): ServerLogLine[] {
  let room = MAX_LOG_CHARS
  const start = lines.findLastIndex(({ text }) => {
    room -= text.length
    return room < 0
  })
  return lines.slice(Math.max(start + 1, lines.length - MAX_LINES))
}
