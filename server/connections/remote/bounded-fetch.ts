/**
 * `fetch` for remote servers. They are no less hostile than local ones, and the SDK reads whatever comes: so an answer, or an
 * event of a stream, is bounded here in size, depth and number of values, as `child-transport.ts` does it for the lines of a child.
 * Streams are brought to an end here too: the SDK waits on after one that broke off, and keeps those that nobody waits for.
 */
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { harmlessJson } from '../../lib/streams/hostile-json.ts'
import { ANSWER_LOST, MAX_LINE_BYTES, RESULT_TOO_LARGE } from '../wire/answer-limits.ts'
import { boundedEvents } from './bounded-events.ts'

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

const TAKES_BACK = 'notifications/cancelled'
/** The SDK itself sees to the end of this one. */
const NEWS = 'subscriptions/listen'

/** For one conversation: the ids in it are its own. */
export function boundedFetch(maxBytes = MAX_LINE_BYTES, send: Fetch = fetch): Fetch {
  const streams = new Map<unknown, AbortController>()
  return async (url, init) => {
    const response = await send(url, init)
    streams.get(takenBack(init?.body))?.abort()
    const { body, status, statusText, headers } = response
    if (body === null) return response
    const about = { status, statusText, headers }
    if (isReadAsEvents(response, init)) {
      const { id, method } = readMessage(init?.body)
      const refused = () => refusal(id, RESULT_TOO_LARGE, 'result_too_large')
      if (id === undefined || method === NEWS) {
        return new Response(body.pipeThrough(boundedEvents(maxBytes, refused)), about)
      }
      const left = new AbortController()
      streams.set(id, left)
      const over = () => streams.delete(id)
      const lost = () => refusal(id, ANSWER_LOST, 'answer_lost')
      const events = boundedEvents(maxBytes, refused, { answer: lost, isLeft: left.signal })
      const chunks = toTheEnd(body, left.signal, init?.signal, over)
      return new Response(chunks.pipeThrough(events), about)
    }
    const bytes = await readBody(body, maxBytes)
    if (bytes !== undefined) return new Response(bytes, about)
    if (!response.ok) return new Response(null, about)
    const { id } = readMessage(init?.body)
    if (id !== undefined) return Response.json(refusal(id, RESULT_TOO_LARGE, 'result_too_large'))
    throw new AppError('unavailable', 'child_answer_invalid', 'The server answers with too much, or nested too deep.')
  }
}

/** All that comes until it ends, breaks off or is left; only when the conversation itself ends, that is an error. */
function toTheEnd(
  body: ReadableStream<Uint8Array>,
  left: AbortSignal,
  closed: AbortSignal | null | undefined,
  over: () => void
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const leave = () => {
    over()
    reader.cancel().catch(() => {})
  }
  left.addEventListener('abort', leave, { once: true })
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read().catch((error) => {
        over()
        if (closed?.aborted) throw error
        return { done: true, value: undefined }
      })
      if (value) controller.enqueue(value)
      if (!done) return
      over()
      controller.close()
    },
    cancel: leave
  })
}

/** What was asked for as a stream is read as one, whatever type it has then. */
function isReadAsEvents({ ok, headers }: Response, init: RequestInit = {}): boolean {
  const wished = new Headers(init.headers).get('accept') ?? ''
  if (ok && (init.method ?? 'GET') === 'GET' && wished.includes('text/event-stream')) return true
  return /^text\/event-stream\s*(;|$)/i.test(headers.get('content-type') ?? '')
}

/** undefined: it is more than may be. Whatever type it says it has, the SDK may take it for JSON. */
async function readBody(body: ReadableStream<Uint8Array>, maxBytes: number) {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body) {
    length += chunk.length
    if (length > maxBytes) return undefined
    chunks.push(chunk)
  }
  try {
    return new Uint8Array(harmlessJson(Buffer.concat(chunks)))
  } catch {
    return undefined
  }
}

/** The answer in place of one that can't be let through or does not come. */
function refusal(id: unknown, code: number, message: string): object | undefined {
  return id === undefined ? undefined : { jsonrpc: '2.0', id, error: { code, message } }
}

/** Of the request that nobody waits for any more. */
function takenBack(body: RequestInit['body']): unknown {
  if (typeof body !== 'string' || !body.includes(TAKES_BACK)) return undefined
  const { method, params } = readMessage(body)
  return method === TAKES_BACK && isRecord(params) ? params.requestId : undefined
}

function readMessage(body: RequestInit['body']): Record<string, unknown> {
  try {
    return Object(JSON.parse(String(body)))
  } catch {
    return {}
  }
}
