import type { FindOptions, RouteResult } from '../../routing/port.ts'
import type { GatewayServices } from '../gateway-services.ts'

/** Words that are as sure as this need no model: it would cost time, and the request leaves the machine for it. */
const SURE = 0.8

/** From a sentence to a tool: by words and past use, and where those leave a doubt, by meaning too if embeddings are configured. */
export async function routeRequest(
  { router, enrichment }: GatewayServices,
  request: string,
  options: FindOptions,
  signal: AbortSignal
): Promise<RouteResult> {
  enrichment?.wake()
  const byWords = router.find(request, options)
  if (!enrichment || (byWords.matches[0]?.confidence ?? 0) >= SURE) return byWords
  const similarities = await enrichment.similarities(request, signal)
  return similarities ? router.find(request, { ...options, similarities }) : byWords
}
