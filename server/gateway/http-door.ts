import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createMcpHandler, type McpRequestContext } from '@modelcontextprotocol/server'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { LOCAL_OWNER } from '../tools/caller.ts'
import { createGatewayServer } from './create-gateway-server.ts'
import type { Gateway } from './gateway.ts'

export interface HttpDoor {
  /** `body` is what a framework has read already, parsed. Who may enter has been settled before. */
  handle(request: IncomingMessage, response: ServerResponse, body?: unknown): Promise<void>
  close(): Promise<void>
}

const MAX_BODY_BYTES = 16 * 1024 * 1024

/**
 * Serves the gateway over Streamable HTTP, every revision, without sessions: any instance can answer any request. `ownerOf` says
 * who a request has proved to be, from its cookies.
 */
export function openHttpDoor(
  gateway: Gateway,
  version: string,
  logger: Logger,
  ownerOf: (cookies: string | undefined) => string = () => LOCAL_OWNER
): HttpDoor {
  const serve = ({ requestInfo }: McpRequestContext) => {
    const owner = ownerOf(requestInfo?.headers.get('cookie') ?? undefined)
    return createGatewayServer(gateway, version, { owner, door: 'http' })
  }
  const handler = createMcpHandler(serve, {
    maxRequestBodySize: MAX_BODY_BYTES,
    onerror: (error) => logger.debug({ err: error }, 'gateway request')
  })
  return {
    async handle(request, response, body) {
      const gone = new AbortController()
      response.once('close', () => gone.abort())
      try {
        const options = body === undefined ? {} : { parsedBody: body }
        await send(response, await handler.fetch(toWebRequest(request, body, gone.signal), options))
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

async function send(response: ServerResponse, answer: Response): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body === null) {
    response.end()
    return
  }
  response.flushHeaders()
  await pipeline(Readable.from(answer.body), response)
}
