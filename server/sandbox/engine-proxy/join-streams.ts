import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

const MAX_BODY_BYTES = 256 * 1024
const OPEN_MS = 30_000

/** What goes to the engine in place of what came. */
export interface Admitted {
  path: string
  body: Buffer
}

export interface JoinInput {
  engineSocket: string
  request: IncomingMessage
  client: Duplex
  head: Buffer
  /** What the engine gets in place of it; rejects when it may not pass. */
  admit(body: Buffer): Promise<Admitted>
}

/**
 * Opens a stream into a container: its input and output, unread from then on. No byte beyond the request's own body goes to the
 * engine before it has agreed to a stream: after any other answer it would take what follows for a request, which nobody judged.
 */
export async function joinStreams({ engineSocket, request, client, head, admit }: JoinInput): Promise<void> {
  client.unshift(head)
  const { path, body } = await admit(await takeBody(client, Number(request.headers['content-length'] ?? 0)))
  // The client has left while its call was looked at.
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
    // Where it ended, the client is ended too, once it has taken the rest: to destroy it would lose that.
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
  upstream.on('timeout', () => upstream.destroy(new Error('the engine does not answer')))
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
