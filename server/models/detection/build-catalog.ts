import { DEMO_INFO } from '../demo/demo-info.ts'
import { wishFor } from '../model-id.ts'
import type { ProviderId } from '../models-options.ts'
import type { ModelCatalog, ModelInfo, ProviderStatus } from '../port.ts'
import type { Detected } from './detect.ts'
import type { ListedModel } from './list-models.ts'

interface Wish {
  provider?: ProviderId | undefined
  model?: string | undefined
}

/** What is offered, and a default that works even when the configured provider does not. */
export function buildCatalog(detected: Detected[], wish: Wish): ModelCatalog {
  const usable = detected.filter(({ models }) => models.length > 0)
  const candidates = usable.filter(({ endpoint }) => wish.provider === undefined || endpoint.provider === wish.provider)
  const wished = candidates.map((found) => pick(found, wish)).find((model) => model !== undefined)
  const [first] = candidates
  const fallback = first?.models[0] && toInfo(first, first.models[0])
  const chosen = wished ?? fallback
  return {
    default: chosen?.id ?? DEMO_INFO.id,
    models: [...usable.flatMap((found) => found.models.map((model) => toInfo(found, model))), DEMO_INFO],
    providers: [
      ...missing(detected, wish),
      ...detected.map((found) => status(found, wished === undefined && found === first ? wish : {}, chosen)),
      { id: DEMO_INFO.provider, ok: true }
    ]
  }
}

function pick(found: Detected, wish: Wish): ModelInfo | undefined {
  const wanted = wishFor(found.endpoint.provider, wish)
  const model = found.models.find(({ id }) => id === wanted)
  return model && toInfo(found, model)
}

function toInfo({ endpoint: { provider } }: Detected, { id, name, contextTokens }: ListedModel): ModelInfo {
  return { id: `${provider}/${id}`, name, provider, ...(contextTokens !== undefined && { contextTokens }) }
}

function status({ endpoint, models, reason }: Detected, wish: Wish, chosen: ModelInfo | undefined): ProviderStatus {
  const lacks =
    wish.model && chosen
      ? `${endpoint.label} does not offer "${wish.model}" (LLM_MODEL); the default is ${chosen.id} instead.`
      : undefined
  const sentence = reason ?? lacks
  return { id: endpoint.provider, ok: models.length > 0, ...(sentence !== undefined && { reason: sentence }) }
}

function missing(detected: Detected[], { provider }: Wish): ProviderStatus[] {
  if (provider === undefined || provider === 'demo') return []
  if (detected.some(({ endpoint }) => endpoint.provider === provider)) return []
  const setting = provider.toUpperCase().replaceAll('-', '_')
  const need = provider === 'openai-compatible' ? `${setting}_BASE_URL` : `${setting}_API_KEY`
  return [{ id: provider, ok: false, reason: `LLM_PROVIDER is ${provider}, but ${need} is not set.` }]
}
