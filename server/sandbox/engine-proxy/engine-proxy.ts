/**
 * Stands between the orchestrator and the engine's socket, which otherwise means root on the host: lets through the calls that
 * sandboxes need, on containers of ours, made as sandboxes are made. Owns the decision; knows nothing of sessions. Invariants: what is
 * not understood is refused, and no byte of it reaches the engine; what was checked is what is acted on: the whole request is there
 * before the check, and the engine gets the full id of what was looked at, never the name that came.
 */
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../lib/logger.ts'
import { type Call, pathOf, readCall } from './allowed-calls.ts'
import { type CreateOptions, whyNotCreate, whyNotExec, whyNotExecStart } from './create-rules.ts'
import { type Admitted, joinStreams } from './join-streams.ts'
import { describeImage, NotThere, readBody, resolveImage, resolveTarget } from './resolve-target.ts'

export interface EngineProxyOptions extends CreateOptions {
  /** The engine's own socket. */
  engineSocket: string
  logger: Logger
}

/** What the proxy says itself, without the engine's own words. */
interface Answer {
  answer: Record<string, unknown>
}

const MAX_BODY_BYTES = 256 * 1024
/** For a request to arrive whole; calls themselves may take longer. */
const REQUEST_MS = 30_000
const MAX_CONNECTIONS = 4096
/** For a client to read why its stream was refused. */
const LINGER_MS = 5000

/** Streams that are joined, per proxy: the HTTP server has let go of them. */
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

/** Ends it, streams included: no new calls at once, a moment for those that run, then nothing is left. */
export async function closeEngineProxy(server: Server, graceMs: number): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  server.closeIdleConnections()
  const timer = setTimeout(() => {
    server.closeAllConnections()
    // A stream that was joined has no end of its own to wait for.
    for (const stream of joinedStreams.get(server) ?? []) stream.destroy()
  }, graceMs)
  await closed
  clearTimeout(timer)
}

async function join(options: EngineProxyOptions, request: IncomingMessage, client: Duplex, head: Buffer) {
  const call = callOf(request)
  if (!('stream' in call) || !call.stream) throw new Error('this call opens no stream')
  if (request.headers['transfer-encoding'] !== undefined)
    throw new Error('a stream is opened with a body of known length')
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

/** Takes the whole body, of known length: bytes beyond it would be another request. Rejects with the reason when the call may not pass. */
async function admit(options: EngineProxyOptions, call: Call, received: Buffer): Promise<Admitted> {
  const body = await judge(options, call, received)
  // Last, so that nothing the client does or leaves out can put time between this and the call itself.
  return { path: pathOf(call, await resolveTarget(options.engineSocket, call)), body }
}

/** The body that the engine gets. Throws with the reason when what came may not pass. */
async function judge(options: EngineProxyOptions, call: Call, body: Buffer): Promise<Buffer> {
  const { kind } = call
  // Our client repeats the query of an attach in a body, which means nothing.
  if (kind === 'container' && call.stream) return Buffer.alloc(0)
  if (body.length === 0 && kind !== 'create' && kind !== 'exec-create') return body
  if (kind === 'read' || kind === 'container' || kind === 'image') throw new Error('this call has no body')
  const value = parseJson(body)
  const problem =
    kind === 'create' ? whyNotCreate(value, options) : kind === 'exec' ? whyNotExecStart(value) : whyNotExec(value)
  if (problem !== null) throw new Error(problem)
  const fields = Object(value)
  const Image = kind === 'create' ? { Image: await resolveImage(options.engineSocket, fields.Image) } : {}
  // As we understood it: a second key of the same name, which the engine might prefer, is gone.
  return Buffer.from(JSON.stringify({ ...fields, ...Image }))
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new Error('the body is no JSON')
  }
}

function callOf({ method = '', url = '' }: IncomingMessage): Call {
  const call = readCall(method, url)
  if (call === null) throw new Error('the orchestrator has no need of this call')
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
  // The client has left while its call was looked at.
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
  // Read to its end: a client that is still sending when the connection closes does not get to see why.
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
  if (error instanceof NotThere) return { status: 404, body: JSON.stringify({ message: error.message }) }
  const sentence = error instanceof Error ? error.message : 'it was not understood'
  logger.warn({ method, url }, `Refused: ${sentence}`)
  return {
    status: 403,
    body: JSON.stringify({ message: `The engine proxy does not let this through: ${sentence}.` })
  }
}
