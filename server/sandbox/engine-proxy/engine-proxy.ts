/**
 * Stands between the orchestrator and the engine's socket, which otherwise means root on the host. It passes only the calls that
 * sandboxes need, on our own containers, created as sandboxes are created. Owns the decision; does not know about sessions.
 * Invariants: a request that is not understood is refused, and no byte of it reaches the engine. The engine acts on exactly what
 * was checked: the check waits for the whole request, and the engine gets the full id of what was checked, never the name from
 * the request.
 */
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../lib/logger.ts'
import { type Call, pathOf, readCall } from './allowed-calls.ts'
import { type CreateOptions, whyNotCreate, whyNotExec, whyNotExecStart } from './create-rules.ts'
import { type Admitted, joinStreams } from './join-streams.ts'
import { describeImage, NotFound, readBody, resolveImage, resolveTarget } from './resolve-target.ts'

export interface EngineProxyOptions extends CreateOptions {
  /** The engine's own socket. */
  engineSocket: string
  logger: Logger
}

/** A response from the proxy itself, without the engine's own text. */
interface Answer {
  answer: Record<string, unknown>
}

const MAX_BODY_BYTES = 256 * 1024
/** The time for a request to arrive completely; the call itself may take longer. */
const REQUEST_MS = 30_000
const MAX_CONNECTIONS = 4096
/** The time for a client to read why its stream was refused. */
const LINGER_MS = 5000

/** The joined streams of each proxy. The HTTP server no longer tracks them. */
const joinedStreams = new WeakMap<Server, Set<Duplex>>()

export function createEngineProxy(options: EngineProxyOptions): Server {
  const streams = new Set<Duplex>()
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
    void receive(options, request).then(
      (admitted) => ('path' in admitted ? forward(options, request, response, admitted) : answer(response, admitted)),
      (error) => refuse(options, request, response, error)
    )
  })
  server.maxConnections = MAX_CONNECTIONS
  joinedStreams.set(server, streams)
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    streams.add(socket)
    socket.once('close', () => streams.delete(socket))
    socket.on('error', () => socket.destroy())
    void join(options, request, socket, head).catch((error) => refuseStream(options, request, socket, error))
  })
  return server
}

/** Closes the proxy and its streams: refuses new calls at once, gives running calls a moment, then ends everything. */
export async function closeEngineProxy(server: Server, graceMs: number): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  server.closeIdleConnections()
  const timer = setTimeout(() => {
    server.closeAllConnections()
    // A joined stream does not end by itself.
    for (const stream of joinedStreams.get(server) ?? []) stream.destroy()
  }, graceMs)
  await closed
  clearTimeout(timer)
}

async function join(options: EngineProxyOptions, request: IncomingMessage, client: Duplex, head: Buffer) {
  const call = callOf(request)
  if (!('stream' in call) || !call.stream) throw new Error('this call opens no stream')
  if (request.headers['transfer-encoding'] !== undefined) throw new Error('a stream needs a body of known length')
  await joinStreams({
    ...{ engineSocket: options.engineSocket, request, client, head },
    admit: (body) => admit(options, call, body)
  })
}

async function receive(options: EngineProxyOptions, request: IncomingMessage): Promise<Admitted | Answer> {
  const call = callOf(request)
  const body = await readBody(request, MAX_BODY_BYTES)
  if (call.kind !== 'image') return admit(options, call, body)
  return { answer: await describeImage(options.engineSocket, call.id) }
}

/**
 * Checks a call with its whole body. The length must be known, because bytes beyond it would be another request. Rejects with the
 * reason if the call is not allowed.
 */
async function admit(options: EngineProxyOptions, call: Call, received: Buffer): Promise<Admitted> {
  const body = await checkBody(options, call, received)
  // Resolve last, so that nothing the client does or omits can put time between the check and the call.
  return { path: pathOf(call, await resolveTarget(options.engineSocket, call)), body }
}

/** Returns the body to send to the engine. Throws the reason if the request's body is not allowed. */
async function checkBody(options: EngineProxyOptions, call: Call, body: Buffer): Promise<Buffer> {
  const { kind } = call
  // Our client library repeats the query of an attach in a body, which means nothing.
  if (kind === 'container' && call.stream) return Buffer.alloc(0)
  if (body.length === 0 && kind !== 'create' && kind !== 'exec-create') return body
  if (kind === 'read' || kind === 'container' || kind === 'image') throw new Error('this call has no body')
  const value = parseJson(body)
  const problem =
    kind === 'create' ? whyNotCreate(value, options) : kind === 'exec' ? whyNotExecStart(value) : whyNotExec(value)
  if (problem !== null) throw new Error(problem)
  const fields = Object(value)
  const Image = kind === 'create' ? { Image: await resolveImage(options.engineSocket, fields.Image) } : {}
  // Rebuild the body from what we parsed: a duplicate key, which the engine might prefer, is gone.
  return Buffer.from(JSON.stringify({ ...fields, ...Image }))
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new Error('the body is not JSON')
  }
}

function callOf({ method = '', url = '' }: IncomingMessage): Call {
  const call = readCall(method, url)
  if (call === null) throw new Error('the orchestrator does not need this call')
  return call
}

function answer(response: ServerResponse, { answer }: Answer): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
}

function forward(
  { engineSocket }: EngineProxyOptions,
  { method }: IncomingMessage,
  response: ServerResponse,
  { path, body }: Admitted
): void {
  // The client disconnected while its call was being checked.
  if (response.destroyed) return
  const headers = { host: 'docker', 'content-type': 'application/json', 'content-length': body.length }
  const upstream = httpRequest({ socketPath: engineSocket, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
    answer.on('error', () => response.destroy())
  })
  upstream.on('error', (error) => {
    if (response.headersSent) response.destroy()
    else response.writeHead(502, { 'content-type': 'application/json' }).end(JSON.stringify({ message: error.message }))
  })
  response.once('close', () => upstream.destroy())
  upstream.end(body)
}

function refuse(options: EngineProxyOptions, request: IncomingMessage, response: ServerResponse, error: unknown): void {
  const { status, body } = refusal(options, request, error)
  // Read the request to its end: a client that is still sending when the connection closes never sees the reason.
  request.resume()
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}

function refuseStream(options: EngineProxyOptions, request: IncomingMessage, socket: Duplex, error: unknown): void {
  const { status, body } = refusal(options, request, error)
  const line = status === 404 ? '404 Not Found' : '403 Forbidden'
  const headers = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close`
  socket.end(`HTTP/1.1 ${line}\r\n${headers}\r\n\r\n${body}`)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

function refusal({ logger }: EngineProxyOptions, { method, url }: IncomingMessage, error: unknown) {
  if (error instanceof NotFound) return { status: 404, body: JSON.stringify({ message: error.message }) }
  const sentence = error instanceof Error ? error.message : 'it was not understood'
  logger.warn({ method, url }, `Refused: ${sentence}`)
  return {
    status: 403,
    body: JSON.stringify({ message: `The engine proxy does not let this through: ${sentence}.` })
  }
}
