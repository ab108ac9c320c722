import { NAMED } from '../../routing/confidence.ts'
import type { FindOptions, RouteResult } from '../../routing/port.ts'
import type { GatewayServices } from '../gateway-services.ts'

/** At this confidence no model is needed: it would cost time, and the request would leave the machine. */
export const SURE = 0.8

/** Finds the tool for a sentence: by words and past use, and if those are uncertain, also by meaning if embeddings are configured. */
export async function routeRequest(
  { router, enrichment }: GatewayServices,
  request: string,
  options: FindOptions,
  signal: AbortSignal
): Promise<RouteResult> {
  enrichment?.wake()
  const byWords = router.find(request, options)
  // A model on this machine costs little, so it is left out only if the request names its tool.
  const isSure = (byWords.matches[0]?.confidence ?? 0) >= (enrichment?.isLocal ? NAMED : SURE)
  if (!enrichment || isSure) return byWords
  const similarities = await enrichment.similarities(request, signal)
  return similarities ? router.find(request, { ...options, similarities }) : byWords
}
