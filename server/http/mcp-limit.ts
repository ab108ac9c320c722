/** Limits the requests of one client to /mcp. A refusal says when to try again, and does not count. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ReportRefusal } from '../lib/refusals.ts'
import { OWNER_COOKIE, readCookie } from '../lib/web/browser-proof.ts'
import type { AddressOf } from '../lib/web/client-address.ts'
import { RateLimit } from '../lib/web/rate-limit.ts'
import type { OwnerAccess } from '../sessions/access/owner-access.ts'

export interface McpLimit {
  /** Returns the seconds to wait, or undefined if the messages may pass. */
  take(client: { owner: string; address: string; isMadeUp: boolean }, messages: number): number | undefined
}

const WINDOW_MS = 60_000
/** Many people can share one address. */
const ADDRESS_FACTOR = 5

export function mcpLimit(perMinute: number, now: () => number = () => performance.now()): McpLimit {
  const owners = new RateLimit(perMinute, WINDOW_MS)
  const addresses = new RateLimit(perMinute * ADDRESS_FACTOR, WINDOW_MS)
  return {
    take({ owner, address, isMadeUp }, messages) {
      const at = now()
      const person = `${address} ${owner}`
      // Anyone can make up owners, so those without sessions share a limit of their address. Nobody else is refused because of them.
      const waitMs = (isMadeUp && addresses.waitMs(address, at, messages)) || owners.tryTake(person, at, messages)
      if (waitMs > 0) return Math.ceil(waitMs / 1000)
      if (isMadeUp) addresses.tryTake(address, at, messages)
      return undefined
    }
  }
}

interface Clients {
  ownerOf(cookies: string | undefined): string
  addressOf: AddressOf
  owners: Pick<OwnerAccess, 'isKnown'>
}

type Handle = (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void>

/** Error codes for refusals of the MCP library and of the gateway's HTTP sessions, which have only a status. */
const CODE_OF_STATUS: Record<number, string> = { 404: 'not_found', 500: 'internal', 503: 'unavailable' }

/** The gateway's door, behind the limit. */
export function limitedMcp(limit: McpLimit, clients: Clients, handle: Handle, refused?: ReportRefusal): Handle {
  return async (request, response, body) => {
    const { cookie } = request.headers
    const browser = readCookie(cookie, OWNER_COOKIE)
    const isMadeUp = browser !== undefined && !(await clients.owners.isKnown(browser))
    const client = { owner: clients.ownerOf(cookie), address: clients.addressOf(request) }
    const seconds = limit.take({ ...client, isMadeUp }, Array.isArray(body) ? body.length : 1)
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
  const known = typeof id === 'string' || typeof id === 'number' ? id : null
  const text = JSON.stringify({ jsonrpc: '2.0', id: known, error })
  response.writeHead(429, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'retry-after': String(seconds)
  })
  response.end(text)
}
