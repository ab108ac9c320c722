import { NAMED } from '../../routing/confidence.ts'
import type { FindOptions, RouteMatch, RouteResult } from '../../routing/port.ts'
import { isSmallTalk } from '../../routing/words/small-talk.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { fitCandidates } from './fit-candidates.ts'
import { hasTwin } from './twin-tools.ts'

/** Where the words were not enough, the values may be. */
const SURE_BY_VALUES = 0.6
/** Matches that are weighed by the values; the best of them are candidates. */
const WEIGHED = 10
export const CANDIDATES = 5
/** From this similarity on, a past request asked for the same. */
const SAME_WORDS = 0.8
/** Less if its tool was chosen only once; that stops only a sentence that is unsure without it. */
const SAME_WORDS_ONCE = 0.7

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
async function routeSentence(core: GatewayServices, sentence: Sentence): Promise<RouteResult> {
  const { request, given, options, signal } = sentence
  const { limit = CANDIDATES } = options
  const routed = await routeRequest(core, request, { ...options, limit: Math.max(WEIGHED, limit) }, signal)
  const weighed = fitCandidates(core, request, given, routed.matches.slice(0, WEIGHED))
  const matches = descending([...weighed, ...routed.matches.slice(WEIGHED)]).slice(0, limit)
  const isUnsure = routed.abstained && (matches[0]?.confidence ?? 0) < SURE_BY_VALUES
  return { ...routed, matches, abstained: isUnsure || isSmallTalk(request) || hasTwin(core, request, matches) }
}

export interface Decided extends RouteResult {
  /** Only past choices lead to the first match. */
  isLearned: boolean
}

/**
 * The matches for a sentence, the one that may run first: `find_tool` shows them, and `execute` runs it. Past choices may rank tools, but
 * what runs, and how sure that is, is decided by the sentence: they may be old, or made for another sentence. They only stop it, if the
 * same words were last meant for another tool.
 */
export async function decide(core: GatewayServices, sentence: Sentence): Promise<Decided> {
  const learned = await routeSentence(core, sentence)
  if (!learned.recalled) return { ...learned, isLearned: false }
  const plain = await routeSentence(core, { ...sentence, options: { ...sentence.options, ignoresUsage: true } })
  const [[best], [other]] = [plain.matches, learned.matches]
  const isSame = best !== undefined && other !== undefined && nameOf(best) === nameOf(other)
  const isUnsure = (best?.confidence ?? 0) < SURE
  const isStopped = !isSame && learned.recalled >= (isUnsure ? SAME_WORDS_ONCE : SAME_WORDS)
  if (plain.abstained || isStopped || !best) return { ...learned, isLearned: true }
  return { ...plain, matches: inOrder(best, learned.matches, plain.matches), isLearned: false }
}

/** The first match, and the others as past choices rank them. None gets a higher confidence than the sentence gives it. */
function inOrder(best: RouteMatch, ranked: readonly RouteMatch[], plain: readonly RouteMatch[]): RouteMatch[] {
  const sure = new Map(plain.map((match) => [nameOf(match), match.confidence]))
  const others = ranked.filter((match) => nameOf(match) !== nameOf(best))
  const judged = others.map((match) => ({ ...match, confidence: sure.get(nameOf(match)) ?? 0 }))
  return descending([best, ...judged]).slice(0, ranked.length)
}

const nameOf = ({ server, tool }: RouteMatch) => `${server}\n${tool}`

/** No match is surer than the one before it. */
function descending(matches: readonly RouteMatch[]): RouteMatch[] {
  let ceiling = 1
  return matches.map((match) => {
    ceiling = Math.min(ceiling, match.confidence)
    return { ...match, confidence: ceiling }
  })
}
