import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { limitedMcp, mcpLimit } from './mcp-limit.ts'

it('limits the requests of one client, says when to come back, and does not count refused ones', () => {
  let now = 0
  const limit = mcpLimit(3, () => now)
  const a = { owner: 'a', address: '1', isMadeUp: false }
  expect([1, 2, 3].map(() => limit.take(a, 1))).toEqual([undefined, undefined, undefined])
  now = 20_000
  for (let i = 0; i < 100; i++) expect(limit.take(a, 1)).toBe(40)
  expect(limit.take({ owner: 'b', address: '1', isMadeUp: false }, 1)).toBeUndefined()
  expect(limit.take({ owner: 'a', address: '2', isMadeUp: false }, 1)).toBeUndefined()
  now = 60_000
  expect(limit.take(a, 1)).toBeUndefined()
})

// Checked: if only owners are counted, all requests pass.
it('counts a client that makes up a new cookie for every request, and each message of a batch', () => {
  const limit = mcpLimit(10, () => 0)
  const taken = Array.from({ length: 200 }, (_, i) =>
    limit.take({ owner: `made-up-${i}`, address: '1', isMadeUp: true }, 1)
  )
  expect(taken.filter((refused) => refused === undefined)).toHaveLength(50)
  // Those who have sessions, and clients that are no browsers, are not kept out by that.
  expect(limit.take({ owner: 'known', address: '1', isMadeUp: false }, 1)).toBeUndefined()
  const batches = Array.from({ length: 5 }, () => limit.take({ owner: 'x', address: '2', isMadeUp: false }, 4))
  expect(batches.map((refused) => refused === undefined)).toEqual([true, true, false, false, false])
  expect(limit.take({ owner: 'y', address: '3', isMadeUp: false }, 1000)).toBeUndefined()
})

it('answers with 429, a JSON-RPC error and the time to come back', async () => {
  const limit = mcpLimit(1)
  const clients = { ownerOf: () => 'local', addressOf: () => 'here', owners: { isKnown: async () => false } }
  const passed: unknown[] = []
  const handle = limitedMcp(limit, clients, async (_request, response, body) => {
    passed.push(body)
    response.end('passed')
  })
  const http = createServer((request, response) => void json(request).then((body) => handle(request, response, body)))
  await once(http.listen(0, '127.0.0.1'), 'listening')
  try {
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
    const post = (id: number) =>
      fetch(url, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id, method: 'x' }) })
    expect(await (await post(1)).text()).toBe('passed')
    const refused = await post(2)
    expect(refused.status).toBe(429)
    const seconds = Number(refused.headers.get('retry-after'))
    expect(seconds).toBeGreaterThan(0)
    expect(await refused.json()).toMatchObject({
      jsonrpc: '2.0',
      id: 2,
      error: { data: { code: 'too_fast', retryAfterSeconds: seconds }, message: expect.stringContaining('seconds') }
    })
    expect(passed).toHaveLength(1)
  } finally {
    http.close()
  }
})
