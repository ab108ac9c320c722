import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { textOf } from '../../../tests/support/text-of.ts'
import { child, openTestConnections, type TestConnections } from '../connections.fixture.ts'
import { boundedFetch } from './bounded-fetch.ts'

function* endless() {
  for (;;) yield `"${'x'.repeat(65_536)}"`
}
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
const asked = { method: 'POST', body: '{"jsonrpc":"2.0","id":7,"method":"tools/call"}' }
const refusal = { jsonrpc: '2.0', id: 7, error: { code: -32_050, message: 'result_too_large' } }

/** Passes an answer through in pieces of `size` bytes, and returns what is left of it. */
function through(text: string, type: string, { status = 200, size = 7, init = asked as RequestInit } = {}) {
  const bytes = Buffer.from(text)
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size)
  )
  const send = async () => new Response(ReadableStream.from(pieces), { status, headers: { 'content-type': type } })
  return boundedFetch(1000, send)('http://x', init)
}

describe('a single answer', () => {
  it('passes unchanged', async () => {
    const text = '{"jsonrpc":"2.0","id":7,"result":{"a":[1,"[[[é"]}}'
    expect(await (await through(text, 'application/json')).text()).toBe(text)
    expect(await (await through('no JSON', 'text/plain')).text()).toBe('no JSON')
  })

  it.each([
    ['too long', `"${'x'.repeat(2000)}"`],
    ['too deep', deep(65)],
    ['too deep behind a mark', `\uFEFF${deep(65)}`]
  ])('is refused when it is %s', async (_, text) => {
    expect(await (await through(text, 'application/json')).json()).toEqual(refusal)
    await expect(through(text, 'application/json', { init: {} })).rejects.toThrow('too much')
    const failed = await through(text, 'text/html', { status: 500 })
    expect([failed.status, await failed.text()]).toEqual([500, ''])
  })

  it('contains no __proto__', async () => {
    expect(await (await through('{"a":{"__proto__":{},"b":1}}', 'application/json')).text()).toBe('{"a":{"b":1}}')
  })
})

describe('a stream of events', () => {
  const events = async (text: string, init: RequestInit = asked) =>
    (await through(text, 'text/event-stream; charset=utf-8', { init })).text()

  it('passes, without comments, whatever its line endings are', async () => {
    const text =
      '\uFEFF: hi\nid: 1\nretry: 700\ndata: \n\nevent: message\r\ndata:{"a":\r\ndata:  1}\r\n\r\ndata: 2\r\r\n\n'
    expect(await events(text)).toBe(
      'id: 1\nretry: 700\ndata: \n\nevent: message\ndata: {"a":\ndata:  1}\n\ndata: 2\n\n'
    )
    const endpoint = 'event: endpoint\ndata: /messages?[[__proto__\n\n'
    expect(await events(endpoint, {})).toBe(endpoint)
  })

  it('ends with an error that the answer is lost, unless it can be resumed', async () => {
    const lost = `data: ${JSON.stringify({ jsonrpc: '2.0', id: 7, error: { code: -32_051, message: 'answer_lost' } })}\n\n`
    expect(await events('data: 1\n\n')).toBe(`data: 1\n\n${lost}`)
    expect(await events('id: 1\ndata: 1\n\n')).toBe('id: 1\ndata: 1\n\n')
  })

  it('is abandoned at once when its reader stops, even while nothing comes', async () => {
    const left = Promise.withResolvers<void>()
    const silent = new ReadableStream({ cancel: () => left.resolve() })
    const send = async () => new Response(silent, { headers: { 'content-type': 'text/event-stream' } })
    const { body } = await boundedFetch(1000, send)('http://x', asked)
    const reader = body?.getReader()
    const read = reader?.read()
    await new Promise((next) => setImmediate(next))
    await reader?.cancel()
    await Promise.all([left.promise, read])
  })

  it('is not requested again at once, whatever the server wants', async () => {
    const retries = ['0', '-1', '', 'x', '499', '500', '9000'].map((ms) => `retry: ${ms}\n\n`)
    const kept = ['500', '500', '500', '500', '500', '500', '9000'].map((ms) => `retry: ${ms}\n\n`)
    expect(await events(retries.join(''), {})).toBe(kept.join(''))
  })

  it('may be long if its comments and events are short', async () => {
    const pings = ': ping\n'.repeat(1000)
    expect(await events(`${pings}${'data: 1\n\n'.repeat(500)}`, {})).toBe('data: 1\n\n'.repeat(500))
  })

  it.each([
    ['a long line', `data: ${'x'.repeat(2000)}\n\n`],
    ['a line without an end', `data: ${'x'.repeat(2000)}`],
    ['many lines', `${'data: xx\n'.repeat(300)}\n`],
    ['a deep one', `data: ${deep(65)}\n\n`],
    ['a deep one over several lines', `${'data: [\n'.repeat(65)}\n`],
    ['a deep one behind an id that is half a string', `id: "\ndata: ${deep(65)}\n\n`],
    ['a deep one behind a return', `: x\r\rdata: ${deep(65)}\n\n`]
  ])('ends with a refusal after %s', async (_, text) => {
    expect(await events(`data: 1\n\n${text}data: 2\n\n`)).toBe(`data: 1\n\ndata: ${JSON.stringify(refusal)}\n\n`)
  })

  // The SDK looks at no type then: as a single answer, this would be one long string.
  it('is recognized by the request, whatever content type it has', async () => {
    const init = { headers: { accept: 'application/json, text/event-stream' } }
    const text = `id: "\ndata: ${deep(65)}\n\ndata: 1\n\n`
    expect(await (await through(text, 'text/plain', { init })).text()).toBe('data: 1\n\n')
  })

  it('drops an oversized event if there was no request', async () => {
    const text = `data: 1\n\ndata: ${'x'.repeat(2000)}\n\ndata: ${deep(65)}\n\ndata: 2\n\n`
    expect(await events(text, {})).toBe('data: 1\n\ndata: 2\n\n')
  })
})

describe('a remote server', () => {
  const tools = ['deep', 'deep event', 'endless', 'endless event'].map((name) => ({
    name,
    inputSchema: { type: 'object' }
  }))
  const answers: Record<string, object> = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } },
    'tools/list': { tools }
  }
  let url = ''
  let test: TestConnections

  const hostile = (name: string, id: number, response: ServerResponse) => {
    const isEvent = name.endsWith('event')
    response.setHeader('content-type', isEvent ? 'text/event-stream' : 'application/json')
    response.write(
      `${isEvent ? 'data: ' : ''}{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"a":`
    )
    if (name.startsWith('deep')) response.end(`${deep(100_000)}}}}${isEvent ? '\n\n' : ''}`)
    else
      Readable.from(endless())
        .on('error', () => {})
        .pipe(response)
  }
  const listener = createServer(async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params } = (await json(request)) as { id?: number; method: string; params?: { name: string } }
    if (id === undefined) return void response.writeHead(202).end()
    if (method === 'tools/call') return hostile(params?.name ?? '', id, response)
    const result = answers[method]
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32_601, message: 'no' } }) })
    )
  })

  beforeAll(async () => {
    await new Promise<void>((ready) => listener.listen(0, '127.0.0.1', ready))
    url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`
    test = await openTestConnections({ evil: { url }, good: child('steady') })
  })
  afterAll(async () => {
    await test.close()
    listener.closeAllConnections()
    listener.close()
  })

  // Checked: with the SDK's plain `fetch`, 100,000 levels are accepted, and an endless answer is read for ever.
  it.each(tools)('does no harm with an answer that is $name', async ({ name }) => {
    await expect(test.call('evil', name)).rejects.toMatchObject({ code: 'result_too_large' })
    expect(textOf((await test.call('good', 'echo', { message: 'on' })).result)).toBe('on')
  })
})
