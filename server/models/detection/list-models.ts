import { z } from 'zod'
import { isAppError } from '../../lib/errors.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { fetchJson, nonsense } from './fetch-json.ts'

/** A model as its provider lists it, before we decide whether to offer it. */
export interface ListedModel {
  id: string
  name: string
  createdMs?: number | undefined
  contextTokens?: number | undefined
  maxOutputTokens?: number | undefined
  /** Compatible servers: what the model takes, such as `text` and `image`. */
  inputs?: string[] | undefined
  /** Gemini only: the methods that the model supports. */
  methods?: string[] | undefined
}

interface Page {
  models: ListedModel[]
  next?: string | undefined
}

const MAX_PAGES = 20
const MAX_MODELS = 5_000

const count = z.number().int().positive().optional().catch(undefined)
const id = z.string().min(1).max(200)
const name = z.string().max(200).optional().catch(undefined)

const models = <M extends z.ZodType>(model: M) => z.array(model).max(MAX_MODELS)

const anthropicModel = z
  .object({
    id,
    display_name: name,
    created_at: z.string().optional().catch(undefined),
    max_input_tokens: count,
    max_tokens: count
  })
  .transform((model): ListedModel => {
    const created = Date.parse(model.created_at ?? '')
    return {
      id: model.id,
      name: model.display_name || model.id,
      createdMs: Number.isNaN(created) ? undefined : created,
      contextTokens: model.max_input_tokens,
      maxOutputTokens: model.max_tokens
    }
  })

const geminiModel = z
  .object({
    name: id,
    displayName: name,
    inputTokenLimit: count,
    outputTokenLimit: count,
    supportedGenerationMethods: z.array(z.string()).catch([])
  })
  .transform((model): ListedModel => {
    const short = model.name.replace(/^models\//, '')
    return {
      id: short,
      name: model.displayName || short,
      contextTokens: model.inputTokenLimit,
      maxOutputTokens: model.outputTokenLimit,
      methods: model.supportedGenerationMethods
    }
  })

const listedInputs = z.array(z.string().max(40)).max(20).optional().catch(undefined)

/** `max_model_len` is from vLLM, `context_length` and `architecture` from OpenRouter, `capabilities` from Mistral. */
const openaiModel = z
  .object({
    id,
    name,
    created: z.number().nonnegative().optional().catch(undefined),
    max_model_len: count,
    context_length: count,
    architecture: z.object({ input_modalities: listedInputs }).optional().catch(undefined),
    capabilities: z.object({ vision: z.boolean().optional() }).optional().catch(undefined)
  })
  .transform((model): ListedModel => {
    return {
      id: model.id,
      name: model.name || model.id,
      createdMs: model.created === undefined ? undefined : model.created * 1000,
      contextTokens: model.context_length ?? model.max_model_len,
      inputs: model.architecture?.input_modalities ?? visionInputs(model.capabilities?.vision)
    }
  })

function visionInputs(hasVision: boolean | undefined): string[] | undefined {
  return hasVision === undefined ? undefined : hasVision ? ['text', 'image'] : ['text']
}

const openai = {
  model: openaiModel,
  page: z.object({ data: models(openaiModel) }).transform(({ data }): Page => ({ models: data }))
}
const formats = {
  anthropic: {
    model: anthropicModel,
    page: z
      .object({
        data: models(anthropicModel),
        has_more: z.boolean().catch(false),
        last_id: z.string().max(200).nullish().catch(undefined)
      })
      .transform(({ data, has_more, last_id }): Page => {
        return { models: data, next: has_more ? (last_id ?? undefined) : undefined }
      })
  },
  gemini: {
    model: geminiModel,
    page: z
      .object({
        models: models(geminiModel).default([]),
        nextPageToken: z.string().max(2_000).optional().catch(undefined)
      })
      .transform((page): Page => ({ models: page.models, next: page.nextPageToken || undefined }))
  },
  openai,
  'openai-compatible': openai
}

/** Lists all models that the provider offers for this key. */
export async function listModels(endpoint: Endpoint, signal: AbortSignal): Promise<ListedModel[]> {
  const found: ListedModel[] = []
  let next: string | undefined
  for (let page = 0; page < MAX_PAGES && found.length < MAX_MODELS; page++) {
    const { data } = formats[endpoint.provider].page.safeParse(
      await fetchJson(endpoint, pagePath(endpoint, next), signal)
    )
    if (data === undefined) throw nonsense(endpoint)
    found.push(...data.models)
    next = data.next
    if (next === undefined) break
  }
  return found
}

/** Finds one model by its id: lists contain dated versions, but providers know their short names too. */
export async function findModel(
  endpoint: Endpoint,
  modelId: string,
  signal: AbortSignal
): Promise<ListedModel | undefined> {
  const path = `/models/${modelId.split('/').map(encodeURIComponent).join('/')}`
  const document = await fetchJson(endpoint, path, signal).catch((error: unknown) => {
    if (isAppError(error)) return undefined
    throw error
  })
  const { data } = formats[endpoint.provider].model.safeParse(document)
  return data && { ...data, id: modelId }
}

function pagePath({ provider }: Endpoint, next: string | undefined): string {
  const cursor = next === undefined ? '' : encodeURIComponent(next)
  if (provider === 'anthropic') return `/models?limit=1000${cursor && `&after_id=${cursor}`}`
  if (provider === 'gemini') return `/models?pageSize=1000${cursor && `&pageToken=${cursor}`}`
  return '/models'
}
