/** Turns texts into vectors by meaning, with OpenAI or a compatible server. It is one request, so it needs no vendor package. */
import { z } from 'zod'
import { AppError } from '../lib/errors.ts'
import { fetchJson, nonsense } from './detection/fetch-json.ts'
import { splitModelId } from './model-id.ts'
import type { ModelsOptions } from './models-options.ts'
import { configuredEndpoints } from './providers/endpoint.ts'

export interface Embedder {
  /** `provider/id`. */
  model: string
  /** Returns one vector of length 1 per text, for at most `BATCH` texts. Does not retry. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>
  /** How many texts to give it at a time, if fewer than `BATCH`. */
  batch?: number
  /** It runs on this machine: nothing leaves it, and a text costs time but no money. */
  isLocal?: boolean
  close?(): Promise<void>
}

/** Keeps the longest vectors of one response within the size limit for responses. */
export const BATCH = 32
const MAX_DIMENSIONS = 4096

const answer = z.object({
  data: z
    .array(z.object({ index: z.number().int(), embedding: z.array(z.number()).min(1).max(MAX_DIMENSIONS) }))
    .max(BATCH)
})

export function createEmbedder(model: string, options: Omit<ModelsOptions, 'logger'>): Embedder {
  const split = splitModelId(model)
  const endpoint = configuredEndpoints(options).find(({ provider }) => provider === split?.provider)
  if (split === undefined || endpoint === undefined) {
    throw new AppError('invalid', 'model_unknown', `No provider is configured for the embeddings of "${model}".`)
  }
  return {
    model,
    async embed(texts, signal) {
      const body = { model: split.id, input: texts, encoding_format: 'float' }
      const wanted = { name: 'embeddings', code: 'embeddings_unreadable', body }
      const read = answer.safeParse(await fetchJson(endpoint, '/embeddings', signal, wanted))
      const found = new Map(read.data?.data.map(({ index, embedding }) => [index, embedding]))
      return texts.map((_, at) => {
        const vector = unit(found.get(at))
        if (vector === undefined) throw nonsense(endpoint, wanted)
        return vector
      })
    }
  }
}

/** Scales to length 1, so that the product of two vectors is their cosine. Returns undefined for a vector without a direction. */
function unit(values: readonly number[] | undefined): Float32Array | undefined {
  const length = Math.hypot(...(values ?? []))
  return length > 0 && Number.isFinite(length) ? Float32Array.from(values ?? [], (value) => value / length) : undefined
}
