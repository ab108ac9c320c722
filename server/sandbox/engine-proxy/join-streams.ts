import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

const MAX_BODY_BYTES = 256 * 1024
const OPEN_MS = 30_000

/** The request that we send to the engine instead of the original one. */
export interface Admitted {
  path: string
  body: Buffer
}

export interface JoinInput {
  engineSocket: string
  request: IncomingMessage
  client: Duplex
  head: Buffer
  /** Returns what to send to the engine instead; rejects if the call is not allowed. */
  admit(body: Buffer): Promise<Admitted>
}

/**
 * Opens a stream into a container and passes its input and output through unread. Before the engine has agreed to a stream, it
 * gets no byte beyond the request's own body: after any other response it would read those bytes as a request that nobody
 * checked.
 */
export async function joinStreams({ engineSocket, request, client, head, admit }: JoinInput): Promise<void> {
  client.unshift(head)
  const { path, body } = await admit(await takeBody(client, Number(request.headers['content-length'] ?? 0)))
  // The client disconnected while its call was being checked.
  if (client.destroyed) return
  const { method } = request
  const headers = {
    ...{ host: 'docker', connection: 'Upgrade', upgrade: 'tcp' },
    ...{ 'content-type': 'application/json', 'content-length': body.length }
  }
  const upstream = httpRequest({ socketPath: engineSocket, method, path, headers, timeout: OPEN_MS, agent: false })
  upstream.on('upgrade', (answer, engine, first) => {
    engine.setTimeout(0)
    client.write(statusAndHeaders(answer))
    client.write(first)
    engine.pipe(client)
    client.pipe(engine)
    engine.on('error', () => client.destroy())
    // If the engine ended the stream, end the client after it has read the rest; destroying it would lose that.
    engine.once('close', () => void (engine.readableEnded ? client.end() : client.destroy()))
    client.once('finish', () => client.destroy())
    client.once('close', () => engine.destroy())
  })
  upstream.on('response', (answer) => {
    const { 'content-length': _length, 'transfer-encoding': _coding, connection: _kept, ...kept } = answer.headers
    client.write(statusAndHeaders({ ...answer, headers: { ...kept, connection: 'close' } }))
    answer.pipe(client)
    client.once('finish', () => client.destroy())
  })
  upstream.on('timeout', () => upstream.destroy(new Error('the engine does not respond')))
  upstream.on('error', () => client.destroy())
  client.once('close', () => upstream.destroy())
  upstream.end(body)
}

async function takeBody(from: Duplex, length: number): Promise<Buffer> {
  if (length === 0) return Buffer.alloc(0)
  if (length > MAX_BODY_BYTES) throw new Error('the body is too large')
  const signal = AbortSignal.timeout(OPEN_MS)
  for (;;) {
    const body: Buffer | null = from.read(length)
    if (body?.length === length) return body
    if (body !== null || from.readableEnded) throw new Error('the body is not complete')
    await once(from, 'readable', { signal })
  }
}

function statusAndHeaders({
  statusCode,
  statusMessage,
  headers
}: Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'headers'>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, '', ''].join('\r\n')
}
