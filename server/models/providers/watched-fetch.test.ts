import { afterEach, expect, test, vi } from 'vitest'
import { startOpenAiServer } from '../../../tests/fixtures/model-servers/openai-server.ts'
import type { ScriptedServer } from '../../../tests/fixtures/model-servers/scripted-server.ts'
import { DEFAULT_TIMEOUTS } from '../models-options.ts'
import { WatchedFetch } from './watched-fetch.ts'

let server: ScriptedServer | undefined
afterEach(() => server?.close())

const OPTIONS = {
  label: 'It',
  idleMs: 5_000,
  totalMs: 5_000,
  maxBytes: 1_000_000,
  signal: new AbortController().signal
}

async function read(options: Partial<typeof OPTIONS>, text: string, ending: 'end' | 'hang' = 'end') {
  server = await startOpenAiServer({ replies: [{ text, delivery: { ending } }] })
  const watch = new WatchedFetch({ ...OPTIONS, ...options })
  const reading = watch
    .fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: '{}' })
    .then((response) => response.text())
  return { watch, reading }
}

test('passes bytes on unchanged', async () => {
  const { reading, watch } = await read({}, 'hello')
  expect(await reading).toContain('"content":"hello"')
  expect(watch.failure).toBeUndefined()
  watch.close()
})

test('an answer over the limit is cut off', async () => {
  const { reading, watch } = await read({ maxBytes: 50_000 }, 'x'.repeat(100_000), 'hang')
  await expect(reading).rejects.toThrow()
  expect(watch.failure).toMatchObject({ code: 'model_stream_cut' })
  expect(await server?.requests[0]?.closed).toEqual({ early: true })
})

test('cuts off an endless answer', async () => {
  const { reading, watch } = await read({ totalMs: 100 }, 'hello', 'hang')
  await expect(reading).rejects.toThrow()
  expect(watch.failure).toMatchObject({ code: 'model_timeout' })
})

test('waits for a model that thinks for three minutes in silence', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const thinking = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 180_000))
      controller.enqueue(Buffer.from('at last'))
      controller.close()
    }
  })
  vi.stubGlobal('fetch', async () => new Response(thinking))
  try {
    const { idleMs, stepMs: totalMs } = DEFAULT_TIMEOUTS
    const watch = new WatchedFetch({ ...OPTIONS, idleMs, totalMs })
    const reading = watch.fetch('http://127.0.0.1/').then((response) => response.text())
    await vi.advanceTimersByTimeAsync(180_000)
    expect(watch.failure).toBeUndefined()
    expect(await reading).toBe('at last')
    watch.close()
  } finally {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  }
})

test('does not treat a slow reader as a silent model', async () => {
  server = await startOpenAiServer({
    replies: [{ text: ['a'.repeat(40_000), 'b'.repeat(40_000)], delivery: { chunkBytes: 1_000 } }]
  })
  const watch = new WatchedFetch({ ...OPTIONS, idleMs: 1000 })
  const response = await watch.fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: '{}' })
  const idle = Promise.withResolvers<void>()
  setTimeout(idle.resolve, 1500)
  await idle.promise
  expect((await response.text()).length).toBeGreaterThan(80_000)
  expect(watch.failure).toBeUndefined()
  watch.close()
})
