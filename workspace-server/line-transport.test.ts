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
