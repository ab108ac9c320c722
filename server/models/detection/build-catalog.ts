import type { ModelCatalog, ModelInfo } from '../port.ts'
import type { ProviderId } from '../models-options.ts'
import { DEMO_INFO } from '../demo/demo-model.ts'
import type { Detected } from './detect.ts'

/** What is offered, and the default: a model that works even when the configured provider does not. */
export function buildCatalog(
  detected: Detected[],
  wish: { provider?: ProviderId | undefined; model?: string | undefined }
): ModelCatalog {
  const models = detected.flatMap((found) => found.models.map((model) => toInfo(found, model)))
  const usable = detected.filter((found) => found.models.length > 0)
  // Unset: the first that has a key, whether or not it answers today: silently using another one would spend elsewhere.
  const chosen = wish.provider ?? detected[0]?.endpoint.provider ?? 'demo'
  const first = usable.find((found) => found.endpoint.provider === chosen)
  const wished = models.find(({ id, provider }) => provider === chosen && isWish(id, provider, wish.model))
  return {
    default: wished?.id ?? (first && toInfo(first, first.models[0]).id) ?? DEMO_INFO.id,
    models: [...models, DEMO_INFO],
    providers: [
      ...detected.map(({ endpoint, models: offered, reason }) => ({
        id: endpoint.provider,
        ok: offered.length > 0,
        ...(reason !== undefined && { reason })
      })),
      ...notConfigured(detected, wish.provider),
      { id: 'demo', ok: true }
    ]
  }
}
