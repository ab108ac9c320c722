import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { AppError, messageOf } from '../../../lib/errors.ts'

export interface EngineJob {
  /** Name of the awaited work, as it appears in messages: "the engine to pull debian:bookworm-slim". */
  what: string
  /** Cancel the job if the engine sends nothing for this long. */
  quietMs: number
  totalMs: number
  /** The upload. If it fails, the job fails. */
  body?: Readable
  onLine?: ((line: string) => void) | undefined
}

const MAX_LINE = 300
const MAX_EVENT = 1024 * 1024
const NOISE = /^ ---> |^Removing intermediate container|^sha256:/

/**
 * Runs a build, pull or import to its end. The engine responds with a stream of JSON lines, and reports a failure as one of them
 * with status 200. Returns the image's id if the engine sent one.
 */
export async function runEngineJob(
  job: EngineJob,
  start: (signal: AbortSignal) => Promise<NodeJS.ReadableStream>
): Promise<string | undefined> {
  const abort = new AbortController()
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  stopped.catch(() => {})
  const fail = (error: Error) => {
    reject(error)
    abort.abort(error)
  }
  const stop = (ms: number) => fail(new AppError('timeout', 'engine_silent', `Waited ${ms / 1000} s for ${job.what}.`))
  job.body?.once('error', fail)
  const total = setTimeout(stop, job.totalMs, job.totalMs)
  let quiet = setTimeout(stop, job.quietMs, job.quietMs)
  let stream: NodeJS.ReadableStream | undefined
  const work = async () => {
    stream = await start(abort.signal)
    return await readEvents(stream, (line) => {
      clearTimeout(quiet)
      quiet = setTimeout(stop, job.quietMs, job.quietMs)
      if (line) job.onLine?.(line)
    })
  }
  try {
    return await Promise.race([work(), stopped])
  } finally {
    clearTimeout(total)
    clearTimeout(quiet)
    job.body?.destroy()
    // The engine cancels a build or a pull when its client disconnects.
    if (stream instanceof Readable) stream.destroy()
  }
}

async function readEvents(stream: NodeJS.ReadableStream, onLine: (line: string) => void): Promise<string | undefined> {
  let id: string | undefined
  for await (const json of lines(stream)) {
    const event = parse(json)
    if (event.error) throw new Error(event.error)
    if (event.id) id = event.id
    for (const line of event.text.split('\n')) onLine(line.trim().slice(0, MAX_LINE))
  }
  return id
}

/** readline is no use here: it treats a broken stream as one that has ended. */
async function* lines(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  const decoder = new StringDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const parts = (rest + decoder.write(Buffer.from(chunk))).split('\n')
    rest = parts.pop() ?? ''
    if (rest.length > MAX_EVENT) throw new Error('the engine sent a line that is too long')
    yield* parts
  }
  yield rest
}

interface EngineEvent {
  text: string
  error?: string
  id?: string
}

function parse(json: string): EngineEvent {
  if (json.trim() === '') return { text: '' }
  try {
    const event = JSON.parse(json)
    const error = event.errorDetail?.message ?? event.error
    if (error) return { text: '', error: String(error) }
    // A pull reports each layer's bytes many times a second. One line per finished step is enough.
    if (event.progressDetail?.total) return { text: '' }
    const id = event.aux?.ID ?? (/^sha256:[0-9a-f]{64}$/.test(event.status) ? event.status : undefined)
    const status = event.id ? `${event.status} ${event.id}` : event.status
    const text = String(event.stream ?? status ?? '')
    return { text: NOISE.test(text) ? '' : text, ...(id && { id: String(id) }) }
  } catch (error) {
    throw new Error(`the engine sent invalid JSON: ${messageOf(error)}`)
  }
}

/** The engine's message, without the text that the client library adds. */
export function engineMessage(error: unknown): string {
  return messageOf(error)
    .replace(/^\(HTTP code \d+\) [^-]* - /, '')
    .trim()
}
