import { PassThrough } from 'node:stream'
import type { JSONRPCMessage } from '@modelcontextprotocol/server'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { LineTransport } from './line-transport.ts'
import { MAX_LINE_BYTES } from './protocol.ts'

async function connected() {
  const [input, output] = [new PassThrough(), new PassThrough({ highWaterMark: 1024 })]
  const transport = new LineTransport(input, output)
  const messages: JSONRPCMessage[] = []
  transport.onmessage = (message) => void messages.push(message)
  await transport.start()
  return { input, output, transport, messages }
}

const request = (id: number, text = '') => ({ jsonrpc: '2.0' as const, id, method: 'm', params: { text } })

describe('reading', () => {
  it('joins messages however they are split', async () => {
    const texts = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 5 })
    const property = fc.asyncProperty(texts, fc.integer({ min: 1, max: 9 }), async (all, size) => {
      const { input, messages } = await connected()
      const sent = all.map((text, id) => request(id, text))
      const bytes = Buffer.from(sent.map((message) => `${JSON.stringify(message)}\n`).join(''))
      for (let at = 0; at < bytes.length; at += size) input.write(bytes.subarray(at, at + size))
      await vi.waitUntil(() => messages.length === sent.length)
      expect(messages).toEqual(sent)
    })
    await fc.assert(property, { numRuns: 50 })
  })

  it('drops a line over the limit and continues with the next', async () => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const { input, messages } = await connected()
    for (let sent = 0; sent <= MAX_LINE_BYTES; sent += 2 ** 20) input.write(Buffer.alloc(2 ** 20, 'x'))
    input.write(`\n${JSON.stringify(request(1))}\n`)
    await vi.waitUntil(() => messages.length === 1)
    vi.restoreAllMocks()
  })

  it('pauses while too many requests are unanswered, and continues with each answer', async () => {
    const { input, output, transport, messages } = await connected()
    output.resume()
    for (let id = 0; id < 40; id++) input.write(`${JSON.stringify(request(id, 'x'.repeat(2 ** 20)))}\n`)
    await vi.waitUntil(() => input.isPaused())
    expect(messages.length).toBeLessThan(40)
    for (let id = 0; id < 40; id++) {
      await vi.waitUntil(() => messages.length > id)
      await transport.send({ jsonrpc: '2.0', id, result: {} })
    }
    expect(messages.length).toBe(40)
  })

  // Checked: if the bytes are read as lines, the call that stands in them arrives.
  it('takes the bytes after a line as its content, however they are split, and never as messages', async () => {
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc.constant(Buffer.from(`\n${JSON.stringify(request(99, 'evil'))}\n`))
    )
    const property = fc.asyncProperty(
      fc.array(content, { maxLength: 4 }),
      fc.integer({ min: 1, max: 30 }),
      async (all, size) => {
        const { input, messages } = await connected()
        const sent = all.flatMap((bytes, id) => {
          const message = { ...request(id), params: { contentBytes: bytes.length } }
          return [Buffer.from(`${JSON.stringify(message)}\n`), bytes]
        })
        const bytes = Buffer.concat([...sent, Buffer.from(`${JSON.stringify(request(50))}\n`)])
        for (let at = 0; at < bytes.length; at += size) input.write(bytes.subarray(at, at + size))
        await vi.waitUntil(() => messages.length > all.length)
        expect(messages.map((message) => ('id' in message ? message.id : undefined))).toEqual([...all.keys(), 50])
        const got = messages.slice(0, -1).map((message) => ('params' in message ? message.params?.content : undefined))
        expect(got).toEqual(all)
      }
    )
    await fc.assert(property, { numRuns: 50 })
  })

  it('ends if the length of the content is impossible, because the next line can not be found', async () => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    for (const contentBytes of [-1, 1.5, MAX_LINE_BYTES + 1, '5', null, [3]]) {
      const { input, messages, transport } = await connected()
      transport.onclose = vi.fn()
      const lines = [{ ...request(1), params: { contentBytes } }, request(2)]
      input.write(lines.map((message) => `${JSON.stringify(message)}\n`).join(''))
      await vi.waitUntil(() => vi.mocked(transport.onclose)?.mock.calls.length === 1)
      expect(messages).toEqual([])
    }
    vi.restoreAllMocks()
  })

  it('closes once when the input ends or the output breaks', async () => {
    const ended = await connected()
    ended.transport.onclose = vi.fn()
    ended.input.end()
    await vi.waitUntil(() => vi.mocked(ended.transport.onclose)?.mock.calls.length === 1)
    const broken = await connected()
    broken.transport.onclose = vi.fn()
    broken.output.destroy(new Error('EPIPE'))
    await vi.waitUntil(() => vi.mocked(broken.transport.onclose)?.mock.calls.length === 1)
    await broken.transport.send({ jsonrpc: '2.0', id: 1, result: {} })
  })
})

describe('writing', () => {
  it('waits for a slow reader', async () => {
    const { output, transport } = await connected()
    let sent = false
    const sending = transport.send(request(1, 'x'.repeat(10_000))).then(() => {
      sent = true
    })
    await new Promise(setImmediate)
    expect(sent).toBe(false)
    output.resume()
    await sending
  })

  it('answers with an error instead of a line over the limit', async () => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const { output, transport } = await connected()
    const chunks: Buffer[] = []
    output.on('data', (chunk: Buffer) => chunks.push(chunk))
    await transport.send({ jsonrpc: '2.0', id: 'x', result: { text: '€'.repeat(MAX_LINE_BYTES / 3) } })
    await vi.waitUntil(() => chunks.length > 0)
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ id: 'x', error: { code: -32603 } })
    vi.restoreAllMocks()
  })
})
