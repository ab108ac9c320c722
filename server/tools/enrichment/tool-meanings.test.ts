import { describe, expect, it, vi } from 'vitest'
import { PATIENCE_MS } from '../../../tests/support/patience-ms.ts'
import { silentLogger } from '../../lib/logger.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { ToolMeanings } from './tool-meanings.ts'

const never = new AbortController().signal
const tools = Array.from({ length: 300 }, (_, at) => ({
  server: 's',
  tool: { name: `tool ${at}`, description: '', inputSchema: {}, hash: `hash-${at}` }
}))

it('keeps the vectors of hundreds of tools, and computes each once', async () => {
  const embed = vi.fn(async (texts: readonly string[]) => texts.map(() => Float32Array.of(1, 0)))
  const embedder = { model: 'openai/x', embed }
  const options = { embedder, keyValues: fakeKeyValueStore(), tools: () => tools, logger: silentLogger }
  const meanings = new ToolMeanings(options)
  expect(meanings.done(tools)).toBe(0)
  meanings.wake()
  await vi.waitFor(async () => expect((await meanings.similarities('a request', never))?.size).toBe(300), PATIENCE_MS)
  expect(meanings.done(tools)).toBe(300)
  await meanings.close()
  const embedded = embed.mock.calls.flatMap(([texts]) => texts).filter((text) => text.startsWith('s tool'))
  expect(embedded).toHaveLength(300)
  const restored = new ToolMeanings(options)
  await restored.restore()
  expect((await restored.similarities('a request', never))?.size).toBe(300)
})

it('tells the tools of two servers apart, even if their definitions are the same', async () => {
  const embed = vi.fn(async (texts: readonly string[]) => texts.map(() => Float32Array.of(1, 0)))
  const twice = ['football', 'chess'].map((server) => ({ server, tool: { ...tools[0]!.tool, name: 'search' } }))
  const options = { embedder: { model: 'm', embed }, tools: () => twice, logger: silentLogger }
  const meanings = new ToolMeanings({ ...options, keyValues: fakeKeyValueStore() })
  meanings.wake()
  await vi.waitFor(() => expect(meanings.done(twice)).toBe(2), PATIENCE_MS)
  await meanings.close()
  expect(embed.mock.calls.flatMap(([texts]) => texts)).toEqual(['football search: ', 'chess search: '])
})

it('compares the clauses of a long request too', async () => {
  const few = tools.slice(0, 2)
  const embed = vi.fn(async (texts: readonly string[]) => texts.map(() => Float32Array.of(1, 0)))
  const options = { embedder: { model: 'm', embed }, tools: () => few, logger: silentLogger }
  const meanings = new ToolMeanings({ ...options, keyValues: fakeKeyValueStore() })
  meanings.wake()
  await vi.waitFor(() => expect(meanings.done(few)).toBe(2), PATIENCE_MS)
  await meanings.similarities('Please book a flight to Rome. Then send an email to Anna.', never)
  expect(embed.mock.lastCall?.[0]).toHaveLength(3)
  await meanings.close()
})

describe('a model on this machine', () => {
  const few = tools.slice(0, 3)
  function local(embed: (texts: readonly string[], signal: AbortSignal) => Promise<Float32Array[]>) {
    const embedder = { model: 'local/x', embed: vi.fn(embed), batch: 1, isLocal: true, close: vi.fn(async () => {}) }
    const logger = { ...silentLogger, warn: vi.fn() }
    const meanings = new ToolMeanings({ embedder, keyValues: fakeKeyValueStore(), tools: () => few, logger })
    return { embedder, logger, meanings }
  }

  it('gets one tool at a time, so that a request never waits for many, and is closed with the rest', async () => {
    const { embedder, meanings } = local(async (texts) => texts.map(() => Float32Array.of(1, 0)))
    meanings.wake()
    await vi.waitFor(() => expect(meanings.done(few)).toBe(3), PATIENCE_MS)
    expect(embedder.embed.mock.calls.map(([texts]) => texts.length)).toEqual([1, 1, 1])
    await meanings.close()
    expect(embedder.close).toHaveBeenCalled()
  })

  it('is not asked about a request in another script, because it knows English only', async () => {
    const { embedder, meanings } = local(async (texts) => texts.map(() => Float32Array.of(1, 0)))
    meanings.wake()
    await vi.waitFor(() => expect(meanings.done(few)).toBe(3), PATIENCE_MS)
    for (const request of ['今天的天气如何？', 'какая сегодня погода', 'מה מזג האוויר'])
      expect(await meanings.similarities(request, never)).toBeUndefined()
    expect((await meanings.similarities('wie wird das Wetter, 你好?', never))?.size).toBe(3)
    expect(embedder.embed).toHaveBeenCalledTimes(4)
    await meanings.close()
  })

  it('that is late is gone without, and asked again with the next request', async () => {
    vi.useFakeTimers()
    try {
      let isLate = false
      const { embedder, logger, meanings } = local(async (texts) => {
        return isLate ? new Promise(() => {}) : texts.map(() => Float32Array.of(1, 0))
      })
      meanings.wake()
      await vi.waitFor(() => expect(meanings.done(few)).toBe(3))
      isLate = true
      const late = meanings.similarities('a request', never)
      await vi.advanceTimersByTimeAsync(2000)
      expect(await late).toBeUndefined()
      isLate = false
      expect((await meanings.similarities('another request', never))?.size).toBe(3)
      expect(embedder.embed).toHaveBeenCalledTimes(5)
      expect(logger.warn).not.toHaveBeenCalled()
    } finally {
      vi.useRealTimers()
    }
  })

  it('that fails on one tool still serves the others, after a pause', async () => {
    vi.useFakeTimers()
    try {
      const { meanings } = local(async (texts) => {
        if (texts[0] === 's tool 0: ') throw new Error('unreachable')
        return texts.map(() => Float32Array.of(1, 0))
      })
      meanings.wake()
      await vi.advanceTimersByTimeAsync(61_000)
      meanings.wake()
      await vi.waitFor(() => expect(meanings.done(few)).toBe(2))
    } finally {
      vi.useRealTimers()
    }
  })
})
