/**
 * Owns the answer to "which tool serves this request, and how sure is that". Knows nothing of connections, of who asks,
 * or of where examples are stored. Invariant: the same calls give the same answers (once it has trained on
 * what was learnt), and in which order tools came changes none.
 */

import { confidenceOf, NAMED } from './confidence.ts'
import { withMeaning } from './meaning.ts'
import type { RouteMatch, Router } from './port.ts'
import type { Candidate } from './ranking.ts'
import { createToolCorpus, toolKey } from './tool-corpus.ts'
import { createUsageMemory, type Schedule } from './usage/usage-memory.ts'

export interface RouterOptions {
  /** Below this confidence of the first match the router abstains. */
  threshold?: number
  /** Past requests kept; the oldest go first. */
  maxExamples?: number
  /** When the next slice of training runs; without it, between other work. */
  schedule?: Schedule
}

/** Chosen so that at least four of five requests that have an answer get one. */
export const DEFAULT_THRESHOLD = 0.25
const MAX_EXAMPLES = 20_000
const DEFAULT_LIMIT = 5
const MAX_LIMIT = 50

/** Confidences of the list: the model's for the first; what it leaves is shared among the others by their scores. */
function confidences(ranked: readonly Candidate[], evidence: readonly number[]): number[] {
  const named = ranked.filter(({ exact }) => exact).length
  const [first] = ranked
  if (!first) return []
  // The model has only seen firsts that share a word with the request, or a past request.
  const seen = first.lexical > 0 || first.usage > 0
  const learned = withMeaning(seen ? confidenceOf(evidence) : 0, ranked)
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
  const usage = createUsageMemory(options.maxExamples ?? MAX_EXAMPLES, options.schedule)
  const catalogue = createToolCorpus(usage)
  const defaultThreshold = options.threshold ?? DEFAULT_THRESHOLD
  return {
    setServer: catalogue.setServer,
    removeServer: catalogue.removeServer,
    find(request, { limit = DEFAULT_LIMIT, threshold = defaultThreshold, server, likeness } = {}) {
      const { ranked, evidence } = catalogue.judge(request, { server, likeness })
      const sure = confidences(ranked, evidence)
      const matches: RouteMatch[] = []
      for (const [at, { slot }] of ranked
        .slice(0, Math.min(Math.max(1, Math.trunc(limit) || DEFAULT_LIMIT), MAX_LIMIT))
        .entries()) {
        const tool = catalogue.tool(slot)
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
