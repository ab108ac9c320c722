/**
 * `fetch` for remote servers, which are as hostile as local ones, while the SDK reads whatever comes. So answers and events are
 * limited here in size, depth and number of values, like a child's lines in `child-transport.ts`. Streams are ended here too: the
 * SDK keeps waiting after one broke off, and keeps those that nobody waits for.
 */
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { harmlessJson } from '../../lib/streams/hostile-json.ts'
import { readBounded } from '../../lib/streams/read-bounded.ts'
import { ANSWER_LOST, MAX_LINE_BYTES, RESULT_TOO_LARGE } from '../wire/answer-limits.ts'
import { boundedEvents } from './bounded-events.ts'

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

const TAKES_BACK = 'notifications/cancelled'
/** The SDK ends this one itself. */
const NEWS = 'subscriptions/listen'

/** For one connection: the request ids belong to it. */
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

/** Reads until the stream ends, breaks off or is abandoned. An error only if the connection itself ends. */
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

/** A response that was requested as a stream is read as one, whatever its type. */
function isReadAsEvents({ ok, headers }: Response, init: RequestInit = {}): boolean {
  const accept = new Headers(init.headers).get('accept') ?? ''
  if (ok && (init.method ?? 'GET') === 'GET' && accept.includes('text/event-stream')) return true
  return /^text\/event-stream\s*(;|$)/i.test(headers.get('content-type') ?? '')
}

/** undefined if it exceeds the limit. The SDK may take it for JSON whatever its type. */
async function readBody(body: ReadableStream<Uint8Array>, maxBytes: number) {
  const bytes = await readBounded(body, maxBytes)
  try {
    return bytes && new Uint8Array(harmlessJson(bytes))
  } catch {
    return undefined
  }
}

/** Replaces an answer that exceeds the limits or does not come. */
function refusal(id: unknown, code: number, message: string): object | undefined {
  return id === undefined ? undefined : { jsonrpc: '2.0', id, error: { code, message } }
}

/** The id of the request that was cancelled. */
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
