import { expect, it, vi } from 'vitest'
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
  meanings.wake()
  await vi.waitFor(async () => expect((await meanings.similarities('a request', never))?.size).toBe(300), PATIENCE_MS)
  await meanings.close()
  const embedded = embed.mock.calls.flatMap(([texts]) => texts).filter((text) => text.startsWith('s tool'))
  expect(embedded).toHaveLength(300)
  const restored = new ToolMeanings(options)
  await restored.restore()
  expect((await restored.similarities('a request', never))?.size).toBe(300)
})
