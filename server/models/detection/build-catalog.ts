import { DEMO_INFO } from '../demo/demo-info.ts'
import { configuredModelOf } from '../model-id.ts'
import type { ProviderId } from '../models-options.ts'
import type { ModelCatalog, ModelInfo, ProviderStatus } from '../port.ts'
import { modelInputs } from '../providers/model-inputs.ts'
import type { Detected } from './detect.ts'
import type { ListedModel } from './list-models.ts'

interface ConfiguredDefault {
  provider?: ProviderId | undefined
  model?: string | undefined
}

/** Builds the list of models, with a default that works even if the configured provider does not. */
export function buildCatalog(detected: Detected[], requested: ConfiguredDefault): ModelCatalog {
  const usable = detected.filter(({ models }) => models.length > 0)
  const candidates = usable.filter(
    ({ endpoint }) => requested.provider === undefined || endpoint.provider === requested.provider
  )
  const preferred = candidates.map((found) => pick(found, requested)).find((model) => model !== undefined)
  const [first] = candidates
  const fallback = first?.models[0] && toInfo(first, first.models[0])
  const chosen = preferred ?? fallback
  return {
    default: chosen?.id ?? DEMO_INFO.id,
    models: [...usable.flatMap((found) => found.models.map((model) => toInfo(found, model))), DEMO_INFO],
    providers: [
      ...missing(detected, requested),
      ...detected.map((found) => status(found, preferred === undefined && found === first ? requested : {}, chosen)),
      { id: DEMO_INFO.provider, ok: true }
    ]
  }
}

function pick(found: Detected, requested: ConfiguredDefault): ModelInfo | undefined {
  const wanted = configuredModelOf(found.endpoint.provider, requested)
  const model = found.models.find(({ id }) => id === wanted)
  return model && toInfo(found, model)
}

function toInfo({ endpoint: { provider } }: Detected, model: ListedModel): ModelInfo {
  const { id, name, contextTokens } = model
  const inputs = modelInputs(provider, id, model.inputs)
  const known = { ...(contextTokens !== undefined && { contextTokens }), ...(inputs && { inputs }) }
  return { id: `${provider}/${id}`, name, provider, ...known }
}

function status(
  { endpoint, models, reason }: Detected,
  requested: ConfiguredDefault,
  chosen: ModelInfo | undefined
): ProviderStatus {
  const lacks =
    requested.model && chosen
      ? `${endpoint.label} does not offer "${requested.model}" (LLM_MODEL); the default is ${chosen.id} instead.`
      : undefined
  const sentence = reason ?? lacks
  return { id: endpoint.provider, ok: models.length > 0, ...(sentence !== undefined && { reason: sentence }) }
}

function missing(detected: Detected[], { provider }: ConfiguredDefault): ProviderStatus[] {
  if (provider === undefined || provider === 'demo') return []
  if (detected.some(({ endpoint }) => endpoint.provider === provider)) return []
  const setting = provider.toUpperCase().replaceAll('-', '_')
  const need = provider === 'openai-compatible' ? `${setting}_BASE_URL` : `${setting}_API_KEY`
  return [{ id: provider, ok: false, reason: `LLM_PROVIDER is ${provider}, but ${need} is not set.` }]
}
