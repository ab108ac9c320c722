import { afterEach, describe, expect, it } from 'vitest'
import { type EmbeddingServer, startEmbeddingServer } from '../../tests/fixtures/model-servers/embedding-server.ts'
import { createEmbedder } from './embedder.ts'

let model: EmbeddingServer | undefined
afterEach(() => model?.close())
const signal = AbortSignal.timeout(30_000)

async function embedder() {
  model = await startEmbeddingServer([['cat'], ['dog']])
  const access = { openaiCompatible: { baseUrl: model.url, apiKey: 'my-secret-key' } }
  return { fake: model, embed: createEmbedder('openai-compatible/vendor/small', access).embed }
}

describe('embeddings', () => {
  it('come in the order of the texts, each of length 1', async () => {
    const { embed } = await embedder()
    const [bird = [], dog = []] = await embed(['a bird', 'a dog'], signal)
    expect([...bird]).toEqual([1, 0, 0])
    expect([...dog].map((value) => value.toFixed(3))).toEqual(['0.707', '0.000', '0.707'])
  })

  it.each(['error', 'nonsense'] as const)('fail in one sentence without the key (%s)', async (mode) => {
    const { embed, fake } = await embedder()
    fake.mode = mode
    const failure = await embed(['x'], signal).catch((error) => error)
    expect(failure.code).toBe('embeddings_unreadable')
    expect(failure.message).toMatch(/embeddings.*Check OPENAI_COMPATIBLE_BASE_URL/)
    expect(failure.message).not.toContain('my-secret-key')
  })

  it('end with their signal', async () => {
    const { embed, fake } = await embedder()
    fake.mode = 'silent'
    await expect(embed(['x'], AbortSignal.timeout(50))).rejects.toMatchObject({ code: 'model_unreachable' })
  })

  it('need a configured provider', () => {
    expect(() => createEmbedder('openai/small', {})).toThrow(/No provider is configured/)
  })
})
