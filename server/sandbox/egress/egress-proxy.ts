/**
 * The only way from a server's container to the network: an HTTP proxy (CONNECT, and plain http:// requests) that allows only the
 * listed hosts. Owns the decision and the report of every refusal; does not know how connections leave the container. Invariant:
 * it connects only to an address that it has checked itself, and reports everything that it refuses.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { messageOf } from '../../lib/errors.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { HostPattern } from '../../lib/web/host-pattern.ts'
import { rememberDialled } from './dialled.ts'
import { checkTarget, readTarget, type Target, type TargetChecks } from './egress-rules.ts'

export interface EgressProxyOptions extends TargetChecks {
  patterns: HostPattern[]
  /** `target` is host:port. */
  onDenied(target: string, reason: string): void
}

export interface EgressProxy {
  /** Takes a connection from inside the container. */
  accept(stream: Duplex): void
  close(): void
}

const MAX_CONNECTIONS = 64
const CONNECT_MS = 10_000
const IDLE_MS = 300_000
const HEADERS_MS = 30_000
/** Headers that apply between client and proxy only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = /^(connection|proxy-.*|keep-alive|te|trailer|transfer-encoding|upgrade)$/i

class Refusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Loads the HTTP modules with the first proxy: that takes longer than the gateway's whole startup. */
export async function createEgressProxy(options: EgressProxyOptions): Promise<EgressProxy> {
  const { createServer } = await import('node:http')
  const server = createServer({ maxHeaderSize: 16_384, headersTimeout: HEADERS_MS, requestTimeout: 0 })
  const streams = new Set<Duplex>()
  server.on('request', (request, response) => void forward(options, request, response))
  server.on('connect', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    void tunnel(options, request, stream, head)
  })
  server.on('clientError', (_error, stream: Duplex) => stream.destroy())
  return { accept: (stream) => accept(server, streams, stream), close: () => closeAll(server, streams) }
}

function accept(server: Server, streams: Set<Duplex>, stream: Duplex): void {
  stream.on('error', () => {})
  if (streams.size >= MAX_CONNECTIONS) {
    stream.end(answer(503, `there are already ${MAX_CONNECTIONS} connections`))
    return
  }
  streams.add(stream)
  stream.once('close', () => streams.delete(stream))
  // Node's documentation allows any stream as a connection.
  server.emit('connection', stream)
}

function closeAll(server: Server, streams: Set<Duplex>): void {
  for (const stream of streams) stream.destroy()
  server.close()
}

async function tunnel(options: EgressProxyOptions, request: IncomingMessage, stream: Duplex, head: Buffer) {
  stream.on('error', () => {})
  try {
    const upstream = await dial(options, readTarget(request.url ?? ''))
    stream.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    if (head.length > 0) upstream.write(head)
    pipeline(stream, upstream, stream, () => upstream.destroy())
  } catch (error) {
    stream.end(answer(error instanceof Refusal ? error.status : 502, messageOf(error)))
  }
}

async function forward(options: EgressProxyOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const url = URL.canParse(request.url ?? '') ? new URL(request.url ?? '') : undefined
    if (url?.protocol !== 'http:') throw new Refusal(400, 'this is a proxy: send it http:// URLs, or CONNECT')
    const upstream = await dial(options, readTarget(url.host, 80))
    const kept = Object.entries(request.headers).filter(([name]) => !HOP_BY_HOP.test(name))
    // Node does not frame a body of unknown length for GET or DELETE: the body would be sent as a request of its own.
    const framing = 'transfer-encoding' in request.headers ? { 'transfer-encoding': 'chunked' } : {}
    const headers = { ...Object.fromEntries(kept), ...framing, host: url.host, connection: 'close' }
    const path = `${url.pathname}${url.search}`
    const onward = (await import('node:http')).request({
      createConnection: () => upstream,
      method: request.method,
      path,
      headers
    })
    onward.on('response', (reply) => {
      const known = Object.entries(reply.headers).filter(([name]) => !HOP_BY_HOP.test(name))
      try {
        response.writeHead(reply.statusCode ?? 502, Object.fromEntries(known))
        pipeline(reply, response, () => {})
      } catch (error) {
        reply.destroy()
        refuse(response, 502, messageOf(error)) // for example an invalid status; rethrown, it would end the process
      }
    })
    onward.on('upgrade', (_reply, socket) => {
      socket.destroy()
      refuse(response, 502, 'the host switches to another protocol, which only CONNECT allows')
    })
    onward.on('error', (error) => refuse(response, 502, messageOf(error)))
    response.once('close', () => upstream.destroy())
    pipeline(request, onward, () => {})
  } catch (error) {
    refuse(response, error instanceof Refusal ? error.status : 502, messageOf(error))
  }
}

/** Throws a Refusal, or the reason why the host can't be reached. */
async function dial(options: EgressProxyOptions, target: Target | undefined): Promise<Socket> {
  if (target === undefined) throw new Refusal(400, 'the host is malformed')
  const verdict = await checkTarget(options.patterns, target, options)
  const name = `${target.host.includes(':') ? `[${target.host}]` : target.host}:${target.port}`
  if ('denied' in verdict) {
    options.onDenied(name, verdict.denied)
    throw new Refusal(403, `${name} is refused: ${verdict.denied} ("network" of this server in mcp.json)`)
  }
  let failure: unknown
  for (const address of verdict.addresses) {
    try {
      return await reach(address, target.port)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

async function reach(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port })
  socket.setTimeout(IDLE_MS, () => socket.destroy())
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('connect', resolve)
  socket.on('error', reject)
  try {
    await withDeadline({ what: `${host} to answer`, ms: CONNECT_MS }, () => promise)
    rememberDialled(socket)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function refuse(response: ServerResponse, status: number, reason: string): void {
  if (response.headersSent) response.destroy()
  else response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(sentence(reason))
}

function answer(status: number, reason: string): string {
  const body = sentence(reason)
  const head = [`HTTP/1.1 ${status} Refused`, 'content-type: text/plain', `content-length: ${Buffer.byteLength(body)}`]
  return `${[...head, 'connection: close'].join('\r\n')}\r\n\r\n${body}`
}

function sentence(reason: string): string {
  return `mcp-orchestrator: ${reason}.\n`
}
