import { connect } from 'node:http2'
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { EGRESS } from '../../../workspace-server/protocol.ts'
import { serveTunnel } from './serve-tunnel.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const [HEADERS, RST_STREAM, SETTINGS] = [1, 3, 4]
const END_HEADERS = 4

function frame(type: number, stream: number, payload: Buffer, flags = 0): Buffer {
  const header = Buffer.alloc(9)
  header.writeUIntBE(payload.length, 0, 3)
  header.set([type, flags], 3)
  header.writeUInt32BE(stream, 5)
  return Buffer.concat([header, payload])
}

/** A field of the static table with a value of its own (RFC 7541, 6.2.2). */
const field = (index: number, value: string) => Buffer.concat([Buffer.from([index, value.length]), Buffer.from(value)])

// Checked: if every stream is answered, an uncaught ERR_HTTP2_INVALID_STREAM follows.
it('survives a connection that is opened and cancelled at once', async () => {
  const [ours, theirs] = duplexPair()
  const accepted: unknown[] = []
  serveTunnel(ours, { accept: (stream) => accepted.push(stream), close: () => {} }, () => {})
  const opened = frame(HEADERS, 1, Buffer.concat([field(2, 'CONNECT'), field(1, EGRESS.authority)]), END_HEADERS)
  const takenBack = frame(RST_STREAM, 1, Buffer.from([0, 0, 0, 8]))
  theirs.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, Buffer.alloc(0)), opened, takenBack]))
  const ping = frame(6, 0, Buffer.from('01234567'))
  theirs.write(ping)
  for await (const chunk of theirs) if (String(chunk).includes('01234567')) break
  expect(accepted).toEqual([])
})

it('says when it is ready, and hands connections on', async () => {
  const [ours, theirs] = duplexPair()
  const ready = Promise.withResolvers<void>()
  serveTunnel(ours, { accept: (stream) => void stream.end('hello'), close: () => {} }, ready.resolve)
  const session = connect(EGRESS.origin, { createConnection: () => theirs })
  session.request({ ':path': EGRESS.ready }).end()
  await ready.promise
  expect(await text(session.request({ ':method': 'CONNECT', ':authority': EGRESS.authority }))).toBe('hello')
  session.destroy()
})
