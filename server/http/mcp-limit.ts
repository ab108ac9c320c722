/** Limits the requests of one client to /mcp. A refusal says when to try again, and does not count. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ReportRefusal } from '../lib/refusals.ts'
import type { AddressOf } from '../lib/web/client-address.ts'

export interface McpLimit {
  /** Returns the seconds to wait, or undefined if the messages may pass. */
  take(client: { owner: string; address: string }, messages: number): number | undefined
}

const WINDOW_MS = 60_000
/** Many people can share one address. */
const ADDRESS_FACTOR = 5

interface Bucket {
  used: number
  endsAt: number
}

export function mcpLimit(perMinute: number, now: () => number = Date.now): McpLimit {
  const buckets = new Map<string, Bucket>()
  let sweptAt = 0
  const bucketOf = (key: string): Bucket => {
    const at = now()
    if (at - sweptAt >= WINDOW_MS) {
      sweptAt = at
      for (const [old, { endsAt }] of buckets) if (endsAt <= at) buckets.delete(old)
    }
    const known = buckets.get(key)
    if (known && known.endsAt > at) return known
    const bucket = { used: 0, endsAt: at + WINDOW_MS }
    buckets.set(key, bucket)
    return bucket
  }
  // A batch larger than the limit passes if it is alone; otherwise it never would.
  const isFull = ({ used }: Bucket, messages: number, max: number) => used > 0 && used + messages > max
  const secondsLeft = ({ endsAt }: Bucket) => Math.ceil((endsAt - now()) / 1000)
  return {
    take({ owner, address }, messages) {
      // Anyone can make up an owner cookie, so the address is checked too, and first.
      const ofAddress = bucketOf(`address ${address}`)
      if (isFull(ofAddress, messages, perMinute * ADDRESS_FACTOR)) return secondsLeft(ofAddress)
      const ofOwner = bucketOf(`owner ${address} ${owner}`)
      if (isFull(ofOwner, messages, perMinute)) return secondsLeft(ofOwner)
      for (const bucket of [ofAddress, ofOwner]) bucket.used += messages
      return undefined
    }
  }
}

type Handle = (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void>

/** Error codes for refusals of the MCP library and of the gateway's HTTP sessions, which have only a status. */
const CODE_OF_STATUS: Record<number, string> = { 404: 'not_found', 500: 'internal', 503: 'unavailable' }

/** The gateway's door, behind the limit. */
export function limitedMcp(
  limit: McpLimit,
  clients: { ownerOf: (cookies: string | undefined) => string; addressOf: AddressOf },
  handle: Handle,
  refused?: ReportRefusal
): Handle {
  return async (request, response, body) => {
    const client = { owner: clients.ownerOf(request.headers.cookie), address: clients.addressOf(request) }
    const seconds = limit.take(client, Array.isArray(body) ? body.length : 1)
    if (seconds === undefined) await handle(request, response, body)
    else refuse(response, body, seconds)
    const { statusCode: status } = response
    if (status < 400) return
    const { address } = client
    const code = status === 429 ? 'too_fast' : (CODE_OF_STATUS[status] ?? 'invalid_request')
    const fields = { method: request.method, route: '/mcp', status, address }
    refused?.({ face: 'mcp', code, line: { sentence: 'Request refused.', sender: address, fields } })
  }
}

/** Answers with a JSON-RPC error in the body, and with the usual status and header. */
function refuse(response: ServerResponse, body: unknown, seconds: number): void {
  const id = typeof body === 'object' && body !== null && 'id' in body ? body.id : null
  const message = `Too many requests to this server; try again in ${seconds} seconds.`
  const error = { code: -32_000, message, data: { code: 'too_fast', retryAfterSeconds: seconds } }
  const text = JSON.stringify({
    jsonrpc: '2.0',
    id: typeof id === 'string' || typeof id === 'number' ? id : null,
    error
  })
  response.writeHead(429, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'retry-after': String(seconds)
  })
  response.end(text)
}
