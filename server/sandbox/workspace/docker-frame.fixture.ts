import { duplexPair } from 'node:stream'
import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { silentLogger } from '../../lib/logger.ts'
import { StreamDemuxer } from '../docker/engine/stream-demuxer.ts'
import { type DemuxSink, StreamTransport, type TransportOptions } from './stream-transport.ts'

export const STDOUT = 1
export const STDERR = 2

export const dockerDemux = (sink: DemuxSink) => new StreamDemuxer(sink)

/** One frame of the engine's multiplexed stream. */
export function frame(type: number, payload: Buffer | string): Buffer {
  const body = Buffer.from(payload)
  const header = Buffer.alloc(8)
  header[0] = type
  header.writeUInt32BE(body.length, 4)
  return Buffer.concat([header, body])
}

export function line(message: unknown): string {
  return `${JSON.stringify(message)}\n`
}

export interface WireRequest {
  id: string
  method: string
  params: { _meta?: { progressToken?: string }; requestId?: string; name?: string; arguments?: Record<string, unknown> }
}

/** A transport whose other end the test controls. It is started by default. */
export async function openTransport(options: Partial<TransportOptions> & { start?: boolean } = {}) {
  const [ours, theirs] = duplexPair()
  const transport = new StreamTransport(ours, { demux: dockerDemux, logger: silentLogger, ...options })
  const received: JSONRPCMessage[] = []
  const events = { closed: 0, errors: [] as Error[] }
  transport.onmessage = (message) => {
    received.push(message)
  }
  transport.onclose = () => {
    events.closed++
  }
  transport.onerror = (error) => events.errors.push(error)
  if (options.start !== false) await transport.start()
  return { transport, received, events, ours, theirs, requests: wireReader(theirs) }
}

/** Reads the lines that arrive at the other end, one at a time. */
function wireReader(stream: AsyncIterable<Buffer>): () => Promise<WireRequest> {
  const iterator = stream[Symbol.asyncIterator]()
  let buffered = ''
  return async () => {
    for (;;) {
      const newline = buffered.indexOf('\n')
      if (newline !== -1) {
        const text = buffered.slice(0, newline)
        buffered = buffered.slice(newline + 1)
        return JSON.parse(text)
      }
      const next = await iterator.next()
      if (next.done) throw new Error('the stream ended')
      buffered += next.value.toString('utf8')
    }
  }
}
