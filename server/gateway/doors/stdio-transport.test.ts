import { PassThrough } from 'node:stream'
import { setImmediate as nextRound } from 'node:timers/promises'
import { type JSONRPCMessage, ProtocolError } from '@modelcontextprotocol/server'
import { describe, expect, it } from 'vitest'
import type { FastCall } from './fast-path.ts'
import { StdioTransport } from './stdio-transport.ts'

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {}
}
const call = (id: number, params: object = {}) => ({
  jsonrpc: '2.0' as const,
  id,
  method: 'tools/call',
  params: { name: 'known', arguments: {}, ...params }
})

/** `sdk` has the messages that went through the SDK, `short` those on the fast path, `written` what the client got. */
async function open(
  answer: (call: FastCall, signal: AbortSignal) => Promise<Record<string, unknown>> = async () => ({})
) {
  const input = new PassThrough()
  const output = new PassThrough()
  const sdk: JSONRPCMessage[] = []
  const short: FastCall[] = []
  const transport = new StdioTransport({
    input: (onChunk) => input.on('data', onChunk),
    output,
    maxLineBytes: 1000,
    maxUnreadBytes: 200_000,
    fastPath: {
      knows: ({ name }) => name === 'known',
      call: (plain, { signal }) => {
        short.push(plain)
        return answer(plain, signal)
      }
    }
  })
  transport.onmessage = (message) => void sdk.push(message)
  await transport.start()
  const settled = async () => {
    for (let round = 0; round < 5; round++) await nextRound()
  }
  return {
    transport,
    output,
    sdk,
    short,
    async say(...messages: (object | string)[]) {
      for (const message of messages)
        input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
      await settled()
    },
    written: () =>
      String(output.read() ?? '')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
  }
}

async function greeted(answer?: Parameters<typeof open>[0]) {
  const door = await open(answer)
  await door.say({ jsonrpc: '2.0', id: 0, method: 'initialize', params: {} })
  await door.transport.send({ jsonrpc: '2.0', id: 0, result: { protocolVersion: '2025-11-25' } })
  door.written()
  return door
}

describe('the client side of the stdio door', () => {
  it('does not use the fast path before the SDK has initialized the client', async () => {
    const { say, sdk, short } = await open()
    await say(call(1))
    expect([sdk.length, short.length]).toEqual([1, 0])
  })

  it('uses the fast path once an older client is initialized, and never for the newer revision or an unknown tool', async () => {
    const { say, sdk, short, written } = await greeted(async ({ args }) => ({ content: [], args }))
    await say(call(1, { arguments: { a: 1 } }), call(2, { _meta: meta }), call(3, { name: 'unknown' }))
    expect(short.map(({ id }) => id)).toEqual([1])
    expect(sdk.slice(1)).toMatchObject([{ id: 2 }, { id: 3 }])
    expect(written()).toEqual([{ jsonrpc: '2.0', id: 1, result: { content: [], args: { a: 1 } } }])
  })

  it('uses the fast path for a newer client after the SDK has answered one of its messages, not after an error', async () => {
    const { say, sdk, short, transport } = await open()
    await say(call(1, { _meta: meta }))
    await transport.send({ jsonrpc: '2.0', id: 1, error: { code: -32_600, message: 'no' } })
    await say(call(2, { _meta: meta }))
    await transport.send({ jsonrpc: '2.0', id: 2, result: {} })
    await say(call(3, { _meta: meta }), call(4))
    expect(short.map(({ id, modern }) => [id, modern])).toEqual([[3, true]])
    expect(sdk).toMatchObject([{ id: 1 }, { id: 2 }, { id: 4 }])
  })

  // Checked: without it, a tool's own error never reaches the client, which waits for ever.
  it('answers with the error of a call, and shows nothing of an unexpected one', async () => {
    const { say, written } = await greeted(async ({ id }) => {
      throw id === 1 ? new ProtocolError(-32_042, 'log in first', { url: 'x' }) : new Error('our own secret')
    })
    await say(call(1), call(2))
    expect(written()).toEqual([
      { jsonrpc: '2.0', id: 1, error: { code: -32_042, message: 'log in first', data: { url: 'x' } } },
      { jsonrpc: '2.0', id: 2, error: { code: -32_603, message: 'Internal error' } }
    ])
  })

  it('ends a cancelled call without an answer, and passes other cancellations on', async () => {
    const { say, sdk, written } = await greeted(
      (_call, signal) => new Promise((done) => signal.addEventListener('abort', () => done({})))
    )
    const cancel = (requestId: number) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
    await say(call(1), cancel(1), cancel(9))
    expect(written()).toEqual([])
    expect(sdk.slice(1)).toEqual([cancel(9)])
  })

  // Checked: without `try`, an unhandled rejection ends the process.
  it('answers with an error if a result can not be serialized, and continues', async () => {
    const deep = { deep: JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) }
    const { say, written } = await greeted(async ({ id }) => (id === 1 ? deep : {}))
    await say(call(1), call(2))
    expect(written()).toMatchObject([
      { id: 1, error: { code: -32_603 } },
      { id: 2, result: {} }
    ])
  })

  // Checked: if everything is queued, the queue grows to 20 MB.
  it('limits notifications, but not answers, for a client that does not read', async () => {
    const { say, transport, output, written } = await greeted()
    const params = { level: 'info' as const, data: 'x'.repeat(2000) }
    for (let count = 0; count < 10_000; count++) {
      await transport.send({ jsonrpc: '2.0', method: 'notifications/message', params })
    }
    expect(output.writableLength).toBeLessThan(300_000)
    expect(output.listenerCount('drain')).toBe(1)
    await transport.send({ jsonrpc: '2.0', id: 5, result: {} })
    for (let got = written(); !got.some(({ id }) => id === 5); got = written()) await nextRound()
    await say(call(6))
    expect(written()).toEqual([{ jsonrpc: '2.0', id: 6, result: {} }])
  })

  it('answers two calls with the same id once on the fast path', async () => {
    const { say, sdk, short } = await greeted(() => new Promise(() => {}))
    await say(call(1), call(1))
    expect([short.length, sdk.length]).toEqual([1, 2])
  })

  it('answers each request of a batch with an error, because batches are not supported', async () => {
    const { say, sdk, written } = await greeted()
    const ping = { jsonrpc: '2.0', method: 'ping' }
    await say([{ ...ping, id: 3 }, { ...ping, id: 'b' }, ping], [], call(1))
    const error = { code: -32_600, message: expect.stringContaining('line of its own') }
    expect(written()).toEqual([
      { jsonrpc: '2.0', id: 3, error },
      { jsonrpc: '2.0', id: 'b', error },
      { jsonrpc: '2.0', error },
      { jsonrpc: '2.0', id: 1, result: {} }
    ])
    expect(sdk).toHaveLength(1)
  })

  it('refuses a line that is not a message, and continues', async () => {
    const { say, written } = await greeted()
    await say('{"broken', '7', 'x'.repeat(2000), '', call(1))
    const [broken, number, long, answer] = written()
    for (const refusal of [broken, number, long]) expect(refusal).toMatchObject({ error: { code: -32_700 } })
    expect(answer).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
  })

  // Seen failing: the refusal had no id, so the client waited for its answer until it gave up.
  it.each([
    ['at its start', { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { text: 'x'.repeat(2000) } }],
    ['at its end', { method: 'tools/call', params: { text: 'x'.repeat(2000) }, jsonrpc: '2.0', id: 7 }]
  ])('answers a request that is too long, if its id is %s', async (_, request) => {
    const { say, written } = await greeted()
    await say(request)
    const message = `This message has ${JSON.stringify(request).length} bytes; the limit is 1000.`
    expect(written()).toEqual([{ jsonrpc: '2.0', id: 7, error: { code: -32_600, message } }])
  })

  it.each([
    ['is an answer', { jsonrpc: '2.0', id: 7, result: { text: 'x'.repeat(2000) } }],
    [
      'has the id of something else first',
      { method: 'tools/call', params: { id: 7, text: 'x'.repeat(2000) }, id: 'y"' }
    ],
    ['has the id of something else last', { method: 'tools/call', params: { text: 'x'.repeat(2000), id: 7 } }]
  ])('answers no id if what is too long %s', async (_, message) => {
    const { say, written } = await greeted()
    await say(message)
    expect(written()).toMatchObject([
      { error: { code: -32_700, message: expect.stringContaining('the limit is 1000') } }
    ])
    expect(written()).toEqual([])
  })
})
