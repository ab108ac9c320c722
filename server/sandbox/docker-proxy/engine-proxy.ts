/**
 * Stands between the orchestrator and the engine's socket, which otherwise means root on the host: lets through the calls that
 * sandboxes need, on containers of ours, made as sandboxes are made. Owns the judging; knows nothing of sessions. Invariant: what is
 * not understood is refused, and no byte of it reaches the engine.
 */
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../lib/logger.ts'
import { LABEL } from '../docker/container-spec.ts'
import { type Call, readCall } from './allowed-calls.ts'
import { type CreateOptions, whyNotCreate, whyNotExec, whyNotExecStart } from './create-rules.ts'
import { joinStreams } from './join-streams.ts'

export interface EngineProxyOptions extends CreateOptions {
  /** The engine's own socket. */
  engineSocket: string
  logger: Logger
}

const MAX_BODY_BYTES = 256 * 1024
const LOOK_MS = 10_000

export function createEngineProxy(options: EngineProxyOptions): Server {
  const server = createServer((request, response) => {
    void admit(options, request).then(
      (body) => forward(options, request, response, body),
      (error) => refuse(options, request, response, error)
    )
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    const joined = admitStream(options, request).then((call) =>
      joinStreams({
        ...{ engineSocket: options.engineSocket, request, client: socket, head },
        judge: (body) => judge(options, call, body)
      })
    )
    void joined.catch((error) => {
      options.logger.warn({ method: request.method, url: request.url }, `Refused: ${sentenceOf(error)}`)
      socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
    })
  })
  return server
}

/** Resolves to the body, of known length: bytes beyond it would be another request. Rejects with the reason when the call may not pass. */
async function admit(options: EngineProxyOptions, request: IncomingMessage): Promise<Buffer> {
  const call = callOf(request)
  if (call.kind === 'exec-create') await mustBeOurs(options, call.id)
  else if ('id' in call) await mustBeAllowed(options, call)
  return judge(options, call, await readBody(request))
}

async function admitStream(options: EngineProxyOptions, request: IncomingMessage): Promise<Call> {
  const call = callOf(request)
  if (!('stream' in call) || !call.stream) throw new Error('this call opens no stream')
  await mustBeAllowed(options, call)
  return call
}

/** The body that the engine gets. Throws with the reason when what came may not pass. */
function judge(options: EngineProxyOptions, call: Call, body: Buffer): Buffer {
  const { kind } = call
  // Our client repeats the query of an attach in a body, which means nothing.
  if (kind === 'container' && call.stream) return Buffer.alloc(0)
  if (body.length === 0 && kind !== 'create' && kind !== 'exec-create') return body
  if (kind === 'read' || kind === 'container') throw new Error('this call has no body')
  const value: unknown = JSON.parse(body.toString('utf8'))
  const problem =
    kind === 'create' ? whyNotCreate(value, options) : kind === 'exec' ? whyNotExecStart(value) : whyNotExec(value)
  if (problem !== null) throw new Error(problem)
  // As we understood it: a second key of the same name, which the engine might prefer, is gone.
  return Buffer.from(JSON.stringify(value))
}

function callOf({ method = '', url = '' }: IncomingMessage): Call {
  const call = readCall(method, url)
  if (call === null) throw new Error('the orchestrator has no need of this call')
  return call
}

async function mustBeAllowed(options: EngineProxyOptions, call: Extract<Call, { id: string }>): Promise<void> {
  if (call.kind !== 'exec') return mustBeOurs(options, call.id)
  const exec = await look(options, `/exec/${call.id}/json`)
  // One that is not there: the engine says so itself.
  if (exec !== null) await mustBeOurs(options, String(exec.ContainerID))
}

async function mustBeOurs(options: EngineProxyOptions, id: string): Promise<void> {
  const container = await look(options, `/containers/${id}/json`)
  if (container === null) return
  const { Labels } = Object(container.Config) as { Labels?: Record<string, string> }
  if (Labels?.[LABEL.app] === undefined) throw new Error('the container is none of ours')
}

async function look({ engineSocket }: EngineProxyOptions, path: string): Promise<Record<string, unknown> | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown> | null>()
  const request = httpRequest({ socketPath: engineSocket, path, timeout: LOOK_MS }, (response) => {
    const read = async () => {
      const body = await readBody(response, 4 * 1024 * 1024)
      if (response.statusCode === 404) return null
      if (response.statusCode !== 200) throw new Error(`the engine answered ${response.statusCode}`)
      return JSON.parse(body.toString('utf8'))
    }
    read().then(resolve, reject)
  })
  request.on('timeout', () => request.destroy(new Error('the engine does not answer')))
  request.on('error', reject)
  request.end()
  return promise
}

async function readBody(message: IncomingMessage, max = MAX_BODY_BYTES): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of message) {
    bytes += chunk.length
    if (bytes > max) throw new Error('the body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function forward(options: EngineProxyOptions, request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const { method, url: path } = request
  const headers = { host: 'docker', 'content-type': 'application/json', 'content-length': body.length }
  const upstream = httpRequest({ socketPath: options.engineSocket, method, path, headers }, (answer) => {
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
  const sentence = sentenceOf(error)
  options.logger.warn({ method: request.method, url: request.url }, `Refused: ${sentence}`)
  // Read to its end: who is still sending when the connection goes does not get to see why.
  request.resume()
  const body = JSON.stringify({ message: `The engine proxy does not let this through: ${sentence}.` })
  response.writeHead(403, { 'content-type': 'application/json' }).end(body)
}

function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : 'it was not understood'
}
