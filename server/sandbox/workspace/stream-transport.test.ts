import { Duplex } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Client, type JSONRPCMessage, type Progress } from '@modelcontextprotocol/client'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import { dockerDemux, frame, line, openTransport, STDERR, STDOUT, type WireRequest } from './docker-frame.fixture.ts'
import { StreamTransport } from './stream-transport.ts'

const request = (id: number, params: Record<string, unknown> = {}): JSONRPCMessage => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params
})
const say = (message: unknown) => frame(STDOUT, line(message))
const answer = (id: unknown, result: unknown = {}) => say({ jsonrpc: '2.0', id, result })

describe('StreamTransport: ids', () => {
  it('sends random ids and tokens and hands back the original ones', async () => {
    const { transport, received, theirs, requests } = await openTransport()
    await transport.send(request(0, { _meta: { progressToken: 0, other: 1 }, a: 1 }))
    await transport.send(request(1))
    const first = await requests()
    const second = await requests()
    expect(Buffer.from(first.id, 'base64url')).toHaveLength(16)
    expect(first.params).toEqual({ _meta: { progressToken: expect.any(String), other: 1 }, a: 1 })
    const ids = [first.id, first.params._meta?.progressToken, second.id]
    expect(new Set(ids).size).toBe(3)
    const progress = {
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: ids[1], progress: 1 }
    }
    theirs.write(Buffer.concat([answer(second.id, { b: 2 }), say(progress), answer(first.id, { a: 1 })]))
    await vi.waitFor(() => expect(received).toHaveLength(3))
    expect(received).toEqual([
      { jsonrpc: '2.0', id: 1, result: { b: 2 } },
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 0, progress: 1 } },
      { jsonrpc: '2.0', id: 0, result: { a: 1 } }
    ])
    await transport.close()
  })

  it('sends content as it is, directly behind its line', async () => {
    const { transport, theirs } = await openTransport()
    const sent: Buffer[] = []
    theirs.on('data', (chunk: Buffer) => sent.push(chunk))
    const content = Buffer.from('\n{"jsonrpc":"2.0"}\n\xff', 'latin1')
    await Promise.all([transport.send(request(0, { content, entries: [] })), transport.send(request(1))])
    await vi.waitFor(() => expect(Buffer.concat(sent).toString('latin1')).toContain('"id"'))
    const all = Buffer.concat(sent)
    const end = all.indexOf(10) + 1
    expect(JSON.parse(all.subarray(0, end).toString()).params).toEqual({ entries: [], contentBytes: content.length })
    expect(all.subarray(end, end + content.length)).toEqual(content)
    await vi.waitFor(() =>
      expect(
        Buffer.concat(sent)
          .subarray(end + content.length)
          .toString()
      ).toMatch(/^{.*}\n$/)
    )
    const large = request(2, { content: Buffer.alloc(9 * 2 ** 20) })
    await expect(transport.send(large)).rejects.toMatchObject({ code: 'message_too_large' })
    await transport.close()
  })

  // Checked: with ids that count up, the forged answer is believed.
  it('never believes a guessed, numeric, missing or second answer', async () => {
    const { transport, received, theirs, requests } = await openTransport()
    await transport.send(request(0))
    const { id } = await requests()
    for (const guess of [0, 1, '0', null, [id], { id }, `${id} `, id.slice(1), '__proto__', 'constructor']) {
      theirs.write(answer(guess, { forged: true }))
    }
    theirs.write(answer(id, { real: true }))
    theirs.write(answer(id, { forged: true }))
    theirs.write(say({ jsonrpc: '2.0', id, error: { code: 1, message: 'forged' } }))
    await vi.waitFor(() => expect(transport.counters.forged).toBe(12))
    expect(received).toEqual([{ jsonrpc: '2.0', id: 0, result: { real: true } }])
    await transport.close()
  })

  it('believes exactly one of many answers in random order, whatever the others are', async () => {
    const forgery = fc.oneof(
      fc.jsonValue().map((id) => ({ jsonrpc: '2.0', id, result: { forged: true } })),
      fc.string().map((method) => ({ jsonrpc: '2.0', id: 0, method })),
      fc.jsonValue().map((params) => ({ jsonrpc: '2.0', method: 'notifications/progress', params })),
      fc.jsonValue()
    )
    await fc.assert(
      fc.asyncProperty(fc.array(forgery), fc.array(forgery), async (before, after) => {
        const { transport, received, theirs, requests, events } = await openTransport()
        await transport.send(request(7))
        const { id } = await requests()
        const lines = [...before, { jsonrpc: '2.0', id, result: { real: true } }, ...after].map((each) => say(each))
        theirs.end(Buffer.concat(lines))
        await vi.waitFor(() => expect(events.closed).toBe(1), { interval: 1 })
        expect(received).toEqual([{ jsonrpc: '2.0', id: 7, result: { real: true } }])
      }),
      { numRuns: 50 }
    )
  })

  it('maps a cancellation, forgets the request, and does not treat its late answer as forged', async () => {
    const { transport, received, theirs, requests } = await openTransport()
    await transport.send(request(3))
    const { id } = await requests()
    const cancel: JSONRPCMessage = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } }
    await transport.send(cancel)
    expect((await requests()).params.requestId).toBe(id)
    await transport.send(cancel)
    theirs.write(Buffer.concat([answer(id), answer(id)]))
    await vi.waitFor(() => expect(transport.counters.forged).toBe(1))
    expect(received).toEqual([])
    await transport.close()
  })

  // Checked: if all notifications pass, two messages arrive instead of one.
  it('refuses requests and unknown notifications from the server', async () => {
    const { transport, received, theirs } = await openTransport()
    for (const method of ['ping', 'sampling/createMessage', 'roots/list'])
      theirs.write(say({ jsonrpc: '2.0', id: 1, method }))
    theirs.write(say({ jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: {} }))
    theirs.write(say({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }))
    await vi.waitFor(() => expect(received).toHaveLength(1))
    expect(transport.counters.refused).toBe(4)
    await transport.close()
  })

  it('keeps only what JSON-RPC gives a meaning', async () => {
    const { transport, received, theirs, requests } = await openTransport()
    for (const id of [0, 1, 2]) await transport.send(request(id))
    const ids = [await requests(), await requests(), await requests()].map((each) => each.id)
    theirs.write(say({ jsonrpc: '2.0', id: ids[0], result: { a: 1 }, extra: 'x' }))
    theirs.write(say({ jsonrpc: '2.0', id: ids[1], result: 'text' }))
    theirs.write(
      say({
        jsonrpc: '2.0',
        id: ids[2],
        error: { code: 'x', message: 5, data: { code: 'why', more: {}, target: { path: 7 } } }
      })
    )
    await vi.waitFor(() => expect(received).toHaveLength(3))
    expect(received).toEqual([
      { jsonrpc: '2.0', id: 0, result: { a: 1 } },
      { jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'The answer has no result.' } },
      { jsonrpc: '2.0', id: 2, error: { code: -32603, message: 'Unknown error', data: { code: 'why' } } }
    ])
    await transport.close()
  })
})

describe('StreamTransport: the stream', () => {
  it('yields the same messages wherever it is cut, with stderr and noise in between', async () => {
    const texts = fc.array(fc.string({ unit: 'binary', maxLength: 50 }), { minLength: 1, maxLength: 8 })
    const noise = fc.constantFrom('', '   ', 'plain text', '{"broken":', '[1,2]', '{"jsonrpc":"1.0"}', 'ünïcode', '"{"')
    const cut = fc.integer({ min: 1, max: 90 })
    await fc.assert(
      fc.asyncProperty(texts, fc.array(noise), fc.array(cut, { minLength: 1 }), async (wanted, noises, cuts) => {
        const { transport, received, theirs, requests, events } = await openTransport()
        for (const id of wanted.keys()) await transport.send(request(id))
        const ids: string[] = []
        for (const _ of wanted) ids.push((await requests()).id)
        const stdout = Buffer.from(
          wanted
            .flatMap((text, i) => [
              `${noises[i % noises.length] ?? ''}\n`,
              line({ jsonrpc: '2.0', id: ids[i], result: { text } })
            ])
            .join('')
        )
        const recorded: Buffer[] = []
        for (let at = 0, i = 0; at < stdout.length; i++) {
          const size = cuts[i % cuts.length] ?? 1
          recorded.push(frame(STDOUT, stdout.subarray(at, at + size)), frame(STDERR, `e${i}\n`))
          at += size
        }
        const whole = Buffer.concat(recorded)
        for (let at = 0, i = 0; at < whole.length; i++) {
          const size = cuts[(i * 7 + 3) % cuts.length] ?? 1
          theirs.write(whole.subarray(at, at + size))
          at += size
        }
        theirs.end()
        await vi.waitFor(() => expect(events.closed).toBe(1), { interval: 1 })
        expect(received).toEqual(wanted.map((text, id) => ({ jsonrpc: '2.0', id, result: { text } })))
        expect(transport.stderr()).toContain('e0\n')
        expect(events.errors).toEqual([])
      }),
      { numRuns: 60 }
    )
  })

  it('ends on a damaged stream, once, with the reason', async () => {
    const { transport, received, theirs, events } = await openTransport()
    theirs.write(Buffer.concat([frame(STDOUT, 'noise\n'), Buffer.from('HTTP/1.1 500 oops\r\n\r\n')]))
    await transport.closed
    expect(events.closed).toBe(1)
    expect(events.errors.map((error) => 'code' in error && error.code)).toEqual(['stream_corrupt'])
    expect(received).toEqual([])
    await transport.close()
    await transport.close()
    expect(events.closed).toBe(1)
    await expect(transport.send(request(1))).rejects.toMatchObject({ code: 'connection_lost' })
  })

  it('closes once, ends the input of the other side, and lets go of one that does not leave', async () => {
    const { transport, events, theirs } = await openTransport()
    const ended = new Promise((resolve) => theirs.once('end', resolve).resume())
    await Promise.all([transport.close(), transport.close(), ended])
    expect(events.closed).toBe(1)
    expect(transport.isOpen).toBe(false)
  })

  it('closes before it was started', async () => {
    const stream = new Duplex({ read() {}, write() {} })
    const transport = new StreamTransport(stream, { demux: dockerDemux, logger: silentLogger })
    await transport.close()
    expect(stream.destroyed).toBe(true)
  })

  it('keeps 64 kB of stderr', async () => {
    const { transport, theirs } = await openTransport()
    for (let i = 0; i < 40; i++) theirs.write(frame(STDERR, `${'é'.repeat(5000)}${i}\n`))
    theirs.end()
    await transport.closed
    expect(Buffer.byteLength(transport.stderr())).toBeGreaterThan(64 * 1024 - 4)
    expect(Buffer.byteLength(transport.stderr())).toBeLessThanOrEqual(64 * 1024)
    expect(transport.stderr()).not.toContain('\ufffd')
    expect(transport.stderr().endsWith('39\n')).toBe(true)
  })
})

describe('StreamTransport: bounds', () => {
  it('refuses a 50 MB result at the limit with flat memory, and goes on', async () => {
    const { transport, received, theirs, requests } = await openTransport()
    await transport.send(request(0))
    await transport.send(request(1))
    const [big, small] = [await requests(), await requests()]
    const chunk = frame(STDOUT, Buffer.alloc(32 * 1024, 'x'))
    theirs.write(frame(STDOUT, `{"jsonrpc":"2.0","id":"${big.id}","result":{"text":"`))
    const before = memory()
    let peak = 0
    for (let sent = 0; sent < 50 * 1024 * 1024; sent += 32 * 1024) {
      if (!theirs.write(chunk)) await new Promise((resolve) => theirs.once('drain', resolve))
      if (sent % (5 * 1024 * 1024) === 0) peak = Math.max(peak, memory())
    }
    theirs.write(Buffer.concat([frame(STDOUT, '"}}\n'), answer(small.id, { ok: true })]))
    await vi.waitFor(() => expect(received).toHaveLength(2))
    expect(received).toEqual([
      { jsonrpc: '2.0', id: 0, error: { code: -32050, message: 'result_too_large' } },
      { jsonrpc: '2.0', id: 1, result: { ok: true } }
    ])
    // The buffer doubles up to 8 MB, and is copied when it does.
    expect(peak - before).toBeLessThan(20 * 1024 * 1024)
    await transport.close()
  })

  it.each([
    ['in its tail', (id: string) => `{"result":{"text":"${'x'.repeat(3000)}"},"jsonrpc":"2.0","id":"${id}"}\n`, 1],
    ['nowhere', () => `{"result":{"text":"${'x'.repeat(6000)}"}}\n`, 2],
    ['nowhere, being noise', () => `${'x'.repeat(6000)}\n`, 0]
  ])('answers an over-long line with its id %s', async (_name, text, failed) => {
    const { transport, received, theirs, requests } = await openTransport({ maxLineBytes: 2000 })
    await transport.send(request(0))
    await transport.send(request(1))
    const { id } = await requests()
    theirs.write(frame(STDOUT, text(id)))
    await vi.waitFor(() => expect(transport.counters.oversize).toBe(1))
    await vi.waitFor(() => expect(received).toHaveLength(failed))
    await transport.close()
  })

  it('lets an over-long progress line go without failing its call', async () => {
    const { transport, received, theirs, requests } = await openTransport({ maxLineBytes: 2000 })
    await transport.send(request(0, { _meta: { progressToken: 0 } }))
    const { id, params } = await requests()
    const message = { progressToken: params._meta?.progressToken, message: 'x'.repeat(6000) }
    theirs.write(say({ jsonrpc: '2.0', method: 'notifications/progress', params: message }))
    theirs.write(answer(id))
    await vi.waitFor(() => expect(received).toEqual([{ jsonrpc: '2.0', id: 0, result: {} }]))
    await transport.close()
  })

  it('fails the waiting call at once if its answer is nested too deeply', async () => {
    const { transport, received, theirs, requests } = await openTransport()
    await transport.send(request(0))
    const { id } = await requests()
    theirs.write(frame(STDOUT, `{"jsonrpc":"2.0","id":"${id}","result":{"a":${'['.repeat(1e6)}${']'.repeat(1e6)}}}\n`))
    await vi.waitFor(() => expect(received).toEqual([expect.objectContaining({ id: 0, error: expect.anything() })]))
    await transport.close()
  })

  it('refuses to send what is over the limit, and more than the other side takes', async () => {
    const { transport } = await openTransport({ maxLineBytes: 2000 })
    await expect(transport.send(request(0, { a: 'x'.repeat(2000) }))).rejects.toMatchObject({
      code: 'message_too_large'
    })
    const sends = Array.from({ length: 1100 }, (_, id) => transport.send(request(id, { a: 'x'.repeat(500) })))
    const results = Promise.allSettled(sends)
    await transport.close()
    const codes = (await results).flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []))
    expect(codes).toContain('sandbox_not_reading')
    expect(codes).toContain('connection_lost')
  })

  it('resolves a send only when the other side has room', async () => {
    const { transport, theirs } = await openTransport()
    let sent = 0
    for (let id = 0; id < 40; id++) void transport.send(request(id, { a: 'x'.repeat(100_000) })).then(() => sent++)
    await new Promise((resolve) => setImmediate(resolve))
    expect(sent).toBeLessThan(5)
    theirs.resume()
    await vi.waitFor(() => expect(sent).toBe(40))
    await transport.close()
  })

  it('stops reading while a consumer is busy', async () => {
    const { transport, theirs, requests } = await openTransport()
    await transport.send(request(0, { _meta: { progressToken: 0 } }))
    const { params } = await requests()
    const gate = Promise.withResolvers<void>()
    let seen = 0
    transport.onmessage = () => {
      seen++
      return gate.promise
    }
    const progress = { progressToken: params._meta?.progressToken, progress: 1, message: 'x'.repeat(1000) }
    const note = say({ jsonrpc: '2.0', method: 'notifications/progress', params: progress })
    let accepted = 0
    for (let i = 0; i < 2000; i++) theirs.write(note, () => accepted++)
    await vi.waitFor(() => expect(seen).toBe(1))
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toBe(1)
    expect(accepted).toBeLessThan(1000)
    gate.resolve()
    await vi.waitFor(() => expect(seen).toBe(2000))
    await transport.close()
  })
})

describe('StreamTransport under the SDK', () => {
  it('gives the last progress to the caller although the answer is in the same chunk', async () => {
    const { transport, theirs, requests } = await openTransport({ start: false })
    const client = new Client({ name: 'test', version: '0' })
    const connecting = client.connect(transport)
    const initialize = await requests()
    theirs.write(
      answer(initialize.id, {
        protocolVersion: '2025-06-18',
        capabilities: {},
        serverInfo: { name: 's', version: '0' }
      })
    )
    await connecting
    await requests()
    const seen: Progress[] = []
    const calling = client.request({ method: 'ping' }, { onprogress: (progress) => seen.push(progress) })
    const ping: WireRequest = await requests()
    const note = (progress: number) =>
      say({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: ping.params._meta?.progressToken, progress, message: 'x' }
      })
    theirs.write(Buffer.concat([note(1), note(2), note(3), answer(ping.id)]))
    await calling
    expect(seen.map((each) => each.progress)).toEqual([1, 2, 3])
    await client.close()
  })
})

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** Memory in use after a garbage collection, in bytes. */
function memory(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
