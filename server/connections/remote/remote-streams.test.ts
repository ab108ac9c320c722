import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../tests/support/eventually.ts'
import { textOf } from '../../../tests/support/text-of.ts'
import { openTestConnections } from '../connections.fixture.ts'

const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A remote server that answers calls as streams, which the test writes. */
async function openStreaming() {
  const streams: ServerResponse[] = []
  const ids: unknown[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params = {} } = Object(await json(request))
    if (id === undefined) return void response.writeHead(202).end()
    const { protocolVersion } = params
    const results: Record<string, object> = {
      initialize: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'r', version: '1' } },
      'tools/list': { tools: [{ name: 'slow', inputSchema: { type: 'object' } }] }
    }
    const result = results[method]
    if (method === 'tools/call') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      response.write(': at work\n\n')
      streams.push(response)
      ids.push(id)
      return
    }
    const answer = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  }
  const listener = createServer((request, response) => void serve(request, response))
  await new Promise<void>((ready) => listener.listen(0, '127.0.0.1', ready))
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`
  const test = await openTestConnections({ far: { url } })
  closing.push(
    () => test.close(),
    () => listener.closeAllConnections(),
    () => void listener.close()
  )
  const answer = (at: number, result: object) =>
    streams[at]?.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: ids[at], result })}\n\n`)
  return { ...test, streams, answer }
}

describe('a remote server that answers as a stream', () => {
  it.each(['ends', 'breaks'])('and %s it without an answer fails the call at once, and runs it once', async (how) => {
    const { call, streams } = await openStreaming()
    const called = call('far', 'slow', {}, { mustNotRepeat: true })
    await eventually('the call', () => streams.length === 1)
    if (how === 'ends') streams[0]?.end()
    else streams[0]?.destroy()
    await expect(called).rejects.toMatchObject({ code: 'child_lost', details: { sent: true } })
    expect(streams).toHaveLength(1)
  })

  it('is taken at its last answer', async () => {
    const { call, streams, answer } = await openStreaming()
    const calls = [call('far', 'slow'), call('far', 'slow')]
    await eventually('the calls', () => streams.length === 2)
    for (const at of [1, 0]) answer(at, { content: [{ type: 'text', text: `answer ${at}` }] })
    const texts = (await Promise.all(calls)).map(({ result }) => textOf(result)).sort()
    expect(texts).toEqual(['answer 0', 'answer 1'])
  })

  it('loses the stream of a cancelled call', async () => {
    const { call, streams } = await openStreaming()
    const giveUp = new AbortController()
    const called = call('far', 'slow', {}, { signal: giveUp.signal })
    await eventually('the call', () => streams.length === 1)
    giveUp.abort()
    await expect(called).rejects.toMatchObject({ code: 'cancelled' })
    await eventually('the end of its stream', () => streams[0]?.closed === true)
  })
})
