import { NAMED } from '../../routing/confidence.ts'
import type { FindOptions, RouteMatch, RouteResult } from '../../routing/port.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { fitCandidates } from './fit-candidates.ts'
import { hasTwin } from './twin-tools.ts'

/** Where the words were not enough, the values may be. */
const SURE_BY_VALUES = 0.6
/** Matches that are weighed by the values; the best of them are candidates. */
const WEIGHED = 10
export const CANDIDATES = 5

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

export interface Sentence {
  request: string
  given: Record<string, unknown>
  options: FindOptions
  signal: AbortSignal
}

/** The best matches, weighed by the values of the sentence. `abstained`: none may be used without asking. */
export async function routeSentence(core: GatewayServices, sentence: Sentence): Promise<RouteResult> {
  const { request, given, options, signal } = sentence
  const routed = await routeRequest(core, request, { ...options, limit: WEIGHED }, signal)
  const matches = fitCandidates(core, request, given, routed.matches).slice(0, CANDIDATES)
  const isUnsure = routed.abstained && (matches[0]?.confidence ?? 0) < SURE_BY_VALUES
  return { matches, abstained: isUnsure || hasTwin(core, request, matches) }
}

/**
 * How certain this match is without past choices; undefined if they alone lead to it. Past choices may rank tools, but what runs is
 * decided by the sentence: they may be old, or made for another sentence.
 */
export async function certaintyOf(
  core: GatewayServices,
  sentence: Sentence,
  { server, tool, confidence }: RouteMatch
): Promise<number | undefined> {
  const options = { ...sentence.options, ignoresUsage: true }
  const { matches, abstained } = await routeSentence(core, { ...sentence, options })
  const [best] = matches
  const isSame = !abstained && best?.server === server && best.tool === tool
  return isSame ? Math.min(confidence, best.confidence) : undefined
}
