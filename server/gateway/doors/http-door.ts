import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import {
  createMcpHandler,
  type McpRequestContext,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS
} from '@modelcontextprotocol/server'
import { type Caller, LOCAL_OWNER, type OwnerOf } from '../../calls/caller.ts'
import { traceFromHeaders } from '../../calls/tracing/tracing.ts'
import { messageOf } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { Logger } from '../../lib/logger.ts'
import { clientName, createGatewayServer, isGatewayTool, namedCaller } from '../execute/create-gateway-server.ts'
import type { Gateway } from '../execute/gateway.ts'
import type { ExposedHttp } from '../expose/http/exposed-http.ts'
import { FastAnswer } from '../expose/http/fast-answer.ts'
import { MAX_BODY_BYTES } from '../max-body-bytes.ts'
import { answerFastCall, type FastCall, MODERN, outcomeOf, readFastCall } from './fast-path.ts'

export interface HttpDoor {
  /** `body` is the parsed body, if a framework has already read it. Access must be checked before. */
  handle(request: IncomingMessage, response: ServerResponse, body?: unknown): Promise<void>
  close(): Promise<void>
}

const MAX_UNREAD_BYTES = 64 * 1024 * 1024
const MAX_CLIENT_CHARS = 100
const SESSION_ID = 'mcp-session-id'

/**
 * Serves the gateway over Streamable HTTP, in every revision, without sessions: any instance can answer any request. `ownerOf`
 * finds the owner of a request from its cookies. With `exposed` it serves the servers' own tools in place of the four.
 */
export function openHttpDoor(
  gateway: Gateway,
  version: string,
  logger: Logger,
  ownerOf: OwnerOf = () => LOCAL_OWNER,
  exposed?: ExposedHttp
): HttpDoor {
  const serve = ({ requestInfo }: McpRequestContext) => {
    const owner = ownerOf(requestInfo?.headers.get('cookie') ?? undefined)
    const trace = traceFromHeaders((name) => requestInfo?.headers.get(name))
    const said = { userAgent: requestInfo?.headers.get('user-agent'), session: requestInfo?.headers.get(SESSION_ID) }
    return createGatewayServer(gateway, version, httpCaller(owner, said), trace)
  }
  const onerror = (error: Error) => logger.debug({ err: error }, 'gateway request')
  const handler = exposed ?? createMcpHandler(serve, { maxRequestBodySize: MAX_BODY_BYTES, onerror })
  return {
    async handle(request, response, body) {
      const gone = new AbortController()
      response.once('close', () => {
        if (!response.writableFinished) gone.abort()
      })
      response.setHeader('x-content-type-options', 'nosniff')
      try {
        const fast = readFastRequest(request, body)
        const own = request.headers[SESSION_ID]
        const callFast =
          fast && typeof own === 'string' ? exposed?.fastCall(own, ownerOf(request.headers.cookie), fast) : undefined
        if (fast && callFast) {
          await answerFast(new FastAnswer(response), fast.id, (answer) => callFast(answer, gone.signal))
          return
        }
        if (fast && !exposed && isGatewayTool(fast.name)) {
          const { cookie, 'user-agent': userAgent, [SESSION_ID]: session } = request.headers
          const caller = namedCaller(httpCaller(ownerOf(cookie), { userAgent, session }), fast.client)
          const trace = traceFromHeaders((name) => request.headers[name]?.toString())
          const call = { ...fast, meta: { ...trace, ...fast.meta } }
          const result = await answerFastCall(gateway, version, call, { caller, signal: gone.signal })
          new FastAnswer(response).end({ jsonrpc: '2.0', id: fast.id, result })
          return
        }
        const session = exposed ? undefined : sessionFor(body)
        if (session !== undefined) response.setHeader(SESSION_ID, session)
        const options = { gone: gone.signal, ...(body === undefined ? {} : { parsedBody: body }) }
        await send(response, await handler.fetch(toWebRequest(request, body, gone.signal), options), gone.signal)
      } catch (error) {
        if (gone.signal.aborted) return
        logger.warn(`A gateway request failed: ${messageOf(error)}`)
        if (!response.headersSent) response.writeHead(500)
        response.end()
      }
    },
    close: () => handler.close()
  }
}

interface Said {
  userAgent?: string | null | undefined
  session?: string | string[] | null | undefined
}

/** Without a name, the User-Agent has to do. */
function httpCaller(owner: string, { userAgent, session }: Said): Caller {
  const client = nameIn(session) ?? userAgent?.slice(0, MAX_CLIENT_CHARS)
  return { owner, door: 'http', ...(client && { client }) }
}

/**
 * Older revisions name the client in `initialize` only, so the session id carries the name to its later requests, whichever instance
 * gets them. There is no session behind it, and it proves nothing: the name is the client's claim in any case.
 */
function sessionFor(body: unknown): string | undefined {
  const { method, params } = isRecord(body) ? body : {}
  const info = method === 'initialize' && isRecord(params) && isRecord(params.clientInfo) ? params.clientInfo : {}
  const { name, version } = info
  if (typeof name !== 'string' || typeof version !== 'string') return undefined
  return `${randomUUID()}.${Buffer.from(clientName({ name, version })).toString('base64url')}`
}

function nameIn(session: Said['session']): string | undefined {
  const [, name = ''] = typeof session === 'string' && session.length < 1000 ? session.split('.') : []
  const [client, version] = Buffer.from(name, 'base64url')
    .toString('utf8')
    .split(/\/(?=[^/]*$)/)
  return client && version !== undefined ? clientName({ name: client, version }) : undefined
}

/** A call whose headers and body agree and that wants no progress: a single JSON answer is enough. */
function readFastRequest({ method, headers }: IncomingMessage, body: unknown): FastCall | undefined {
  const { accept = '', 'content-type': type = '', 'mcp-protocol-version': version } = headers
  if (method !== 'POST' || !accept.includes('application/json') || !accept.includes('text/event-stream'))
    return undefined
  if (!/^application\/json\s*(;|$)/i.test(type)) return undefined
  const call = readFastCall(body)
  if (call === undefined || call.progressToken !== undefined) return undefined
  const { 'mcp-method': namedMethod, 'mcp-name': namedTool } = headers
  if (call.modern) {
    return version === MODERN && namedMethod === 'tools/call' && namedTool === call.name ? call : undefined
  }
  const isOld = typeof version === 'string' && SUPPORTED_PROTOCOL_VERSIONS.includes(version) && version < MODERN
  return isOld && namedMethod === undefined && namedTool === undefined ? call : undefined
}

async function answerFast(
  answer: FastAnswer,
  id: RequestId,
  call: (answer: FastAnswer) => Promise<Record<string, unknown> | undefined>
): Promise<void> {
  const outcome = await outcomeOf(call(answer))
  if ('error' in outcome) answer.end({ jsonrpc: '2.0', id, error: outcome.error })
  else if (outcome.result === undefined) answer.drop()
  else answer.end({ jsonrpc: '2.0', id, result: outcome.result })
}

function toWebRequest(request: IncomingMessage, body: unknown, signal: AbortSignal): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) headers.append(name, each)
  }
  const method = request.method ?? 'GET'
  const url = new URL(request.url ?? '/', `http://${request.headers.host ?? 'localhost'}`)
  const hasBody = method !== 'GET' && method !== 'HEAD' && body === undefined
  return new Request(url, {
    method,
    headers,
    signal,
    ...(hasBody ? { body: Readable.toWeb(request), duplex: 'half' as const } : {})
  })
}

/** Does not wait for the client: the SDK would queue without limit for one that does not read, so such a client is disconnected. */
async function send(response: ServerResponse, answer: Response, gone: AbortSignal): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body === null) {
    response.end()
    return
  }
  response.flushHeaders()
  const reader = answer.body.getReader()
  const leave = () => void reader.cancel().catch(() => {})
  if (gone.aborted) leave()
  else gone.addEventListener('abort', leave, { once: true })
  for (;;) {
    const { done, value } = await reader.read()
    if (done || response.destroyed) break
    response.write(value)
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy()
  }
  response.end()
}
