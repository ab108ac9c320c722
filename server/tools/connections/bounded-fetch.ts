/**
 * `fetch` for remote servers. They are no less hostile than local ones, and the SDK reads whatever comes: so an answer, or an
 * event of a stream, is bounded here in size, depth and number of values, as `child-transport.ts` does it for the lines of a child.
 */
import { AppError } from '../../lib/errors.ts'
import { harmlessJson } from '../../lib/hostile-json.ts'
import { boundedEvents } from './bounded-events.ts'
import { MAX_LINE_BYTES, RESULT_TOO_LARGE } from './child-transport.ts'

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

export function boundedFetch(maxBytes = MAX_LINE_BYTES, send: Fetch = fetch): Fetch {
  return async (url, init) => {
    const response = await send(url, init)
    const { body, status, statusText, headers } = response
    if (body === null) return response
    const about = { status, statusText, headers }
    if (isReadAsEvents(response, init)) {
      const events = boundedEvents(maxBytes, () => refusal(init?.body))
      return new Response(body.pipeThrough(events), about)
    }
    const bytes = await readBody(body, maxBytes)
    if (bytes !== undefined) return new Response(bytes, about)
    if (!response.ok) return new Response(null, about)
    const refused = refusal(init?.body)
    if (refused !== undefined) return Response.json(refused)
    throw new AppError('unavailable', 'child_answer_invalid', 'The server answers with too much, or nested too deep.')
  }
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

/** The answer in place of one that can't be let through, where it is known what was asked. */
function refusal(asked: RequestInit['body']): object | undefined {
  try {
    const { id } = JSON.parse(String(asked))
    const error = { code: RESULT_TOO_LARGE, message: 'result_too_large' }
    return id === undefined ? undefined : { jsonrpc: '2.0', id, error }
  } catch {
    return undefined
  }
}
