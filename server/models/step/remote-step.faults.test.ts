import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import type { ScriptedServerOptions } from '../../../tests/fixtures/model-servers/model-reply.ts'
import {
  type Connected,
  collect,
  connect,
  stepRequest,
  TEST_KEY,
  WIRES,
  type Wire
} from '../../../tests/fixtures/model-servers/wires.ts'
import { freePort } from '../../../tests/support/free-port.ts'
import { silentLogger } from '../../lib/logger.ts'
import { createModels } from '../create-models.ts'
import type { ModelTimeouts } from '../models-options.ts'

const open: Connected[] = []
async function talk(wire: Wire, script: ScriptedServerOptions, timeouts?: Partial<ModelTimeouts>): Promise<Connected> {
  const connected = await connect(wire, script, timeouts)
  open.push(connected)
  return connected
}
afterEach(async () => {
  // After every test: no log line contains the key.
  for (const { log } of open) expect(log.join('')).not.toContain(TEST_KEY)
  await Promise.all(open.splice(0).map(({ server }) => server.close()))
})

const [anthropic, gemini, responses, chat] = WIRES as [Wire, Wire, Wire, Wire]

/** An error body in this vendor's format. */
function errorBody(wire: Wire, message: string, code?: string): unknown {
  if (wire === anthropic) return { type: 'error', error: { type: code ?? 'api_error', message } }
  if (wire === gemini) return { error: { code: 500, message, status: code ?? 'INTERNAL' } }
  return { error: { message, type: 'invalid_request_error', param: null, code: code ?? null } }
}

describe.each(WIRES)('$name', (wire) => {
  test('a bad key', async () => {
    const { step, server } = await talk(wire, { apiKey: 'another key' })
    const { error, retries } = await collect(step('hi'))
    expect(error).toMatchObject({ code: 'model_key_rejected', message: expect.stringMatching(/_API_KEY/) })
    expect(retries).toEqual([])
    expect(server.requests).toEqual([])
  })

  test.each([
    [404, 'model_not_found', 1],
    [422, 'model_request_rejected', 1],
    [307, 'model_request_rejected', 1],
    [500, 'model_overloaded', 4],
    [503, 'model_overloaded', 4],
    [529, 'model_overloaded', 4],
    [429, 'model_rate_limited', 4]
  ])('status %i ends as %s after %i tries', async (status, code, tries) => {
    const body = errorBody(wire, `it is broken, key ${TEST_KEY}`)
    const { step, server } = await talk(wire, { otherwise: () => ({ status, body, headers: { location: '/x' } }) })
    const { error, retries } = await collect(step('hi'))
    expect(error).toMatchObject({ code })
    expect(String(error)).not.toContain(TEST_KEY)
    if (status >= 400) expect(String(error)).toContain('it is broken')
    expect(JSON.stringify(error)).not.toContain(TEST_KEY)
    expect(server.requests).toHaveLength(tries)
    expect(retries.map(({ attempt }) => attempt)).toEqual([2, 3, 4].slice(0, tries - 1))
  })

  test.each([
    ['retry-after-ms', '30', 30],
    ['retry-after', '0.05', 50],
    ['retry-after', '0', 0]
  ])('429 with %s: %s is retried after the requested wait', async (header, value, inMs) => {
    const limited = { status: 429, headers: { [header]: value }, body: errorBody(wire, 'slow down') }
    const { step } = await talk(wire, { replies: [limited, { text: 'here' }] })
    const { text, retries } = await collect(step('hi'))
    expect(text).toBe('here')
    expect(retries).toEqual([
      { type: 'retry', attempt: 2, inMs, reason: expect.stringContaining('rate limited (429)') }
    ])
  })

  // Seen before: "overloaded (500) Retrying in 1 s." for an error of the vendor's own.
  test.each([
    [500, 'server error (500).'],
    [503, 'overloaded (503).']
  ])('says what happened before it tries again: %i', async (status, words) => {
    const { step } = await talk(wire, {
      replies: [{ status, body: errorBody(wire, 'it is broken') }, { text: 'here' }]
    })
    const { retries } = await collect(step('hi'))
    expect(retries[0]?.reason.endsWith(`: ${words}`)).toBe(true)
  })

  test('a requested wait above our maximum is an error at once', async () => {
    const limited = { status: 429, headers: { 'retry-after': '3600' }, body: errorBody(wire, 'slow down') }
    const { step, server } = await talk(wire, { replies: [limited] })
    const { error } = await collect(step('hi'))
    expect(error).toMatchObject({ code: 'model_rate_limited', message: expect.stringContaining('3600 s') })
    expect(server.requests).toHaveLength(1)
  })

  test('an abort ends the wait before another try', async () => {
    const limited = { status: 429, headers: { 'retry-after': '50' }, body: errorBody(wire, 'slow down') }
    const { step } = await talk(wire, { replies: [limited] })
    const controller = new AbortController()
    const started = performance.now()
    let error: unknown
    try {
      for await (const event of step('hi', { signal: controller.signal }))
        if (event.type === 'retry') controller.abort()
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ kind: 'cancelled' })
    expect(performance.now() - started).toBeLessThan(40_000)
  })

  test.each(['reset', 'end'] as const)('a stream that stops in the middle of the text (%s)', async (ending) => {
    const text = ['Once upon a time', ' there was', ' a stream'.repeat(50)]
    const { step, server } = await talk(wire, {
      otherwise: () => ({ text, delivery: { stopAfter: 'Once upon a time', ending } })
    })
    const { error, text: streamed, done } = await collect(step('hi'))
    expect(streamed).toContain('Once upon a time')
    expect(done).toBeUndefined()
    expect(error).toMatchObject({ code: 'model_stream_cut' })
    expect(server.requests).toHaveLength(1)
  })

  test('retries after a connection reset before any output', async () => {
    const cut = { text: 'never seen', delivery: { stopAfter: 10, ending: 'reset' as const } }
    const { step, server } = await talk(wire, { replies: [{ reset: true }, cut, { text: 'third time lucky' }] })
    const { text, retries, error } = await collect(step('hi'))
    expect(error).toBeUndefined()
    expect(text).toBe('third time lucky')
    expect(retries).toHaveLength(2)
    expect(server.requests).toHaveLength(3)
  })

  test.each([
    { hang: 'before-headers' as const },
    { hang: 'after-headers' as const },
    { text: 'Hm', delivery: { stopAfter: 40, ending: 'hang' as const } }
  ])('silence %o', async (reply) => {
    const { step, server } = await talk(wire, { replies: [reply] }, { idleMs: 500 })
    const { error } = await collect(step('hi'))
    expect(error).toMatchObject({ kind: 'timeout', code: 'model_timeout' })
    expect(await server.requests[0]?.closed).toEqual({ early: true })
  })

  test('an abort during the stream closes the request upstream', async () => {
    const text = Array.from({ length: 200 }, (_, i) => `word ${i} `)
    const delivery = { chunkBytes: 50, stopAfter: 'word 5', ending: 'hang' as const }
    const { step, server } = await talk(wire, { replies: [{ text, delivery }] })
    const controller = new AbortController()
    let error: unknown
    try {
      for await (const event of step('hi', { signal: controller.signal })) {
        if (event.type === 'text-delta') controller.abort()
      }
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ kind: 'cancelled' })
    expect(await server.requests[0]?.closed).toEqual({ early: true })
  })

  test('a consumer that leaves closes the request upstream', async () => {
    const text = Array.from({ length: 200 }, (_, i) => `word ${i} `)
    const delivery = { stopAfter: 'word 5', ending: 'hang' as const }
    const { step, server } = await talk(wire, { replies: [{ text, delivery }] })
    for await (const event of step('hi')) if (event.type === 'text-delta') break
    expect(await server.requests[0]?.closed).toEqual({ early: true })
  })

  test('many steps under one signal leave nothing behind on it', async () => {
    const { step } = await talk(wire, { otherwise: () => ({ text: 'ok' }) })
    const { signal } = new AbortController()
    for (let i = 0; i < 3; i++) await collect(step('hi', { signal }))
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('a signal that is aborted beforehand sends nothing', async () => {
    const { step, server } = await talk(wire, { replies: [{ text: 'no' }] })
    const { error } = await collect(step('hi', { signal: AbortSignal.abort() }))
    expect(error).toMatchObject({ kind: 'cancelled' })
    expect(server.requests).toHaveLength(0)
  })

  test('an answer that is not a stream', async () => {
    const { step } = await talk(wire, { otherwise: () => ({ status: 200, body: '<html>Welcome to the hotel</html>' }) })
    expect((await collect(step('hi'))).error).toMatchObject({ code: 'model_stream_cut' })
  })

  test('nobody listens', async () => {
    const port = await freePort()
    const logger = silentLogger
    const models = createModels({ ...wire.options(`http://127.0.0.1:${port}`), logger, timeouts: { backoffMs: 1 } })
    const { error, retries } = await collect(models.step(stepRequest(wire.model, 'hi')))
    expect(error).toMatchObject({ code: 'model_unreachable', message: expect.stringContaining(`127.0.0.1:${port}`) })
    expect(retries).toHaveLength(3)
  })
})

describe('context full', () => {
  const tooLong = 'This model has a maximum context length of 8192 tokens. Please reduce the length of the messages.'
  test.each([
    ['anthropic', anthropic, 400, 'prompt is too long: 207791 tokens > 200000 maximum', 'invalid_request_error'],
    [
      'anthropic',
      anthropic,
      400,
      'input length and `max_tokens` exceed context limit: 1 + 2 > 3',
      'invalid_request_error'
    ],
    ['anthropic', anthropic, 413, 'Request exceeds the maximum size', 'request_too_large'],
    [
      'gemini',
      gemini,
      400,
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      'INVALID_ARGUMENT'
    ],
    ['responses', responses, 400, 'Your input exceeds the context window of this model.', 'context_length_exceeded'],
    ['chat', chat, 400, tooLong, 'context_length_exceeded'],
    ['chat, llama.cpp', chat, 400, 'the request exceeds the available context size, try increasing it', 'x'],
    ['chat, ollama', chat, 500, 'context limit exceeded', 'x']
  ])('%s: %s %i %s', async (_, wire, status, message, code) => {
    const { step, server } = await talk(wire, { replies: [{ status, body: errorBody(wire, message, code) }] })
    expect((await collect(step('hi'))).error).toMatchObject({ code: 'model_context_full', kind: 'invalid' })
    expect(server.requests).toHaveLength(1)
  })

  test('does not confuse it with an ordinary error about a limit', async () => {
    const body = errorBody(
      anthropic,
      'max_tokens: 100000 > 8192, which is the maximum allowed',
      'invalid_request_error'
    )
    const { step } = await talk(anthropic, { replies: [{ status: 400, body }] })
    expect((await collect(step('hi'))).error).toMatchObject({ code: 'model_request_rejected' })
  })
})

describe('errors inside the stream', () => {
  const start = {
    type: 'message_start',
    message: { id: 'm', role: 'assistant', model: 'x', content: [], usage: { input_tokens: 1, output_tokens: 1 } }
  }
  const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
  const block = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }
  const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } }

  test.each([[[overloaded]], [[start, overloaded]]])(
    'anthropic, overloaded before any output: tried again',
    async (events) => {
      const { step } = await talk(anthropic, { replies: [{ events }, { text: 'better' }] })
      const { text, retries } = await collect(step('hi'))
      expect(text).toBe('better')
      expect(retries).toHaveLength(1)
    }
  )

  test('anthropic, overloaded in the middle, then silence: ends at once', async () => {
    const delivery = { ending: 'hang' as const }
    const { step, server } = await talk(anthropic, {
      replies: [{ events: [start, block, delta, overloaded], delivery }]
    })
    const { text, error } = await collect(step('hi'))
    expect(text).toBe('Hello')
    expect(error).toMatchObject({ code: 'model_overloaded' })
    expect(await server.requests[0]?.closed).toEqual({ early: true })
  })

  test('responses, failed before any output', async () => {
    const created = { type: 'response.created', response: { id: 'r', created_at: 1, model: 'x' } }
    const failed = { type: 'response.failed', response: { error: { code: 'server_error', message: 'It broke' } } }
    const { step } = await talk(responses, { replies: [{ events: [created, failed] }, { text: 'better' }] })
    expect((await collect(step('hi'))).text).toBe('better')
  })

  test('chat, an error object', async () => {
    const events = [{ error: { message: 'CUDA out of memory', type: 'server_error', code: 500 } }]
    const { step } = await talk(chat, { otherwise: () => ({ events }) })
    const { error, retries } = await collect(step('hi'))
    expect(error).toMatchObject({ code: 'model_overloaded', message: expect.stringContaining('CUDA') })
    expect(retries).toHaveLength(3)
  })

  test('gemini, an error object', async () => {
    const events = [{ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }]
    const { step } = await talk(gemini, { replies: [{ events }, { text: 'better' }] })
    expect((await collect(step('hi'))).text).toBe('better')
  })

  test.each(WIRES)('$name: events that are not JSON', async (wire) => {
    const { step } = await talk(wire, { otherwise: () => ({ events: ['not', 'an', 'event'] }) })
    expect((await collect(step('hi'))).error).toMatchObject({ code: 'model_stream_cut' })
  })
})

test('does not retry when the account has no credit', async () => {
  const body = errorBody(responses, 'You exceeded your current quota', 'insufficient_quota')
  const { step, server } = await talk(responses, { replies: [{ status: 429, body }] })
  expect((await collect(step('hi'))).error).toMatchObject({ code: 'model_rate_limited' })
  expect(server.requests).toHaveLength(1)
})

test("respects Gemini's own way to request a wait", async () => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '0.02s' }]
  const body = { error: { code: 429, message: 'quota', status: 'RESOURCE_EXHAUSTED', details } }
  const { step } = await talk(gemini, { replies: [{ status: 429, body }, { text: 'here' }] })
  expect((await collect(step('hi'))).retries).toMatchObject([{ inMs: 20 }])
})
