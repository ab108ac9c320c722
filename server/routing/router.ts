/**
 * Decides which tool serves a request, and how certain that is. Knows nothing about connections, callers, or where examples are
 * stored. Invariant: the same calls give the same answers (once training has finished), in whatever order tools were added.
 */

import { confidenceOf, NAMED } from './confidence.ts'
import { withMeaning } from './meaning.ts'
import type { RouteMatch, Router } from './port.ts'
import type { Candidate } from './ranking.ts'
import { createToolCorpus, toolKey } from './tool-corpus.ts'
import { createOwnedUsage } from './usage/owned-usage.ts'
import type { Schedule } from './usage/usage-memory.ts'

export interface RouterOptions {
  /** The router abstains if the confidence of the first match is below this. */
  threshold?: number
  /** Number of past requests to keep; the oldest are dropped first. */
  maxExamples?: number
  /** When to run the next slice of training; by default, between other work. */
  schedule?: Schedule
}

/** Chosen so that at least four of five requests that have an answer get one. */
export const DEFAULT_THRESHOLD = 0.25
const MAX_EXAMPLES = 20_000
const DEFAULT_LIMIT = 5
const MAX_LIMIT = 50

/** Confidences for the list: the model's for the first; the others share the rest by their scores. */
function confidences(ranked: readonly Candidate[], evidence: readonly number[]): number[] {
  const named = ranked.filter(({ exact }) => exact).length
  const [first] = ranked
  if (!first) return []
  // The model was fitted only on first matches that share a word with the request or with a past one.
  const isFitted = first.lexical > 0 || first.usage > 0
  const learned = withMeaning(isFitted ? confidenceOf(evidence) : 0, ranked)
  const top = named > 0 ? Math.max(NAMED / named, Math.min(learned, NAMED)) : learned
  const odds = ranked.slice(1).map((candidate) => Math.exp(Math.min(0, candidate.total - first.total)))
  const sum = odds.reduce((total, value) => total + value, 1)
  let ceiling = top
  const rest = odds.map((value) => {
    ceiling = Math.min(ceiling, ((1 - top) * value) / sum)
    return ceiling
  })
  return [top, ...rest]
}

export function createRouter(options: RouterOptions = {}): Router {
  const usage = createOwnedUsage(options.maxExamples ?? MAX_EXAMPLES, options.schedule)
  const corpus = createToolCorpus(usage)
  const defaultThreshold = options.threshold ?? DEFAULT_THRESHOLD
  return {
    setServer: corpus.setServer,
    removeServer: corpus.removeServer,
    find(request, { limit = DEFAULT_LIMIT, threshold = defaultThreshold, server, similarities, owner } = {}) {
      const { ranked, evidence } = corpus.judge(request, { server, similarities, owner })
      const sure = confidences(ranked, evidence)
      const matches: RouteMatch[] = []
      for (const [at, { slot }] of ranked
        .slice(0, Math.min(Math.max(1, Math.trunc(limit) || DEFAULT_LIMIT), MAX_LIMIT))
        .entries()) {
        const tool = corpus.tool(slot)
        if (!tool) continue
        matches.push({ server: tool.server, tool: tool.name, confidence: sure[at] ?? 0, description: tool.description })
      }
      return { matches, abstained: matches.length === 0 || (matches[0]?.confidence ?? 0) < threshold }
    },
    learn: (example) => usage.learn(example, toolKey(example.server, example.tool)),
    usage: () => usage.examples(),
    forgetUsage: () => usage.clear()
  }
}
