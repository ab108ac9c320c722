/**
 * Decides which tool serves a request, and how certain that is. Knows nothing about connections, callers, or where examples are
 * stored. Invariant: the same calls give the same answers (once training has finished), in whatever order tools were added.
 */

import { confidenceOf, isServed, NAMED } from './confidence.ts'
import { STANDS_OUT } from './meaning.ts'
import type { RouteMatch, Router } from './port.ts'
import type { Candidate } from './ranking.ts'
import { createToolCorpus, toolKey } from './tool-corpus.ts'
import { createOwnedUsage } from './usage/owned-usage.ts'
import type { Schedule } from './usage/usage-memory.ts'
import { isSmallTalk } from './words/small-talk.ts'

export interface RouterOptions {
  /** The router abstains if the confidence of the first match is below this; by default, if no tool seems to serve the request. */
  threshold?: number
  /** Number of past requests to keep; the oldest are dropped first. */
  maxExamples?: number
  /** When to run the next slice of training; by default, between other work. */
  schedule?: Schedule
}

/** The highest confidence without a word in common: calls that nobody named need more to run. */
const MEANING_ALONE = 0.6
/** Below this, the first match is as good as any. */
const MIN_CONFIDENCE = 0.1
const MAX_EXAMPLES = 20_000
const DEFAULT_LIMIT = 5
const MAX_LIMIT = 50

/** The models were fitted only on first matches that stand out in meaning, or share a word with the request or with a past one. */
function isFitted({ lexical, usage, meaning }: Candidate): boolean {
  return lexical > 0 || usage > 0 || meaning >= STANDS_OUT
}

/** Confidences for the list: the model's for the first; the others share the rest by their scores. */
function confidences(ranked: readonly Candidate[], evidence: readonly number[]): number[] {
  const named = ranked.filter(({ exact }) => exact).length
  const [first] = ranked
  if (!first) return []
  const most = first.lexical > 0 || first.usage > 0 ? 1 : MEANING_ALONE
  const learned = isFitted(first) ? Math.min(most, confidenceOf(evidence)) : 0
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
  return {
    setServer: corpus.setServer,
    removeServer: corpus.removeServer,
    find(request, { limit = DEFAULT_LIMIT, threshold = options.threshold, ...asked } = {}) {
      const { ranked, evidence, recalled } = corpus.judge(request, asked)
      const sure = confidences(ranked, evidence)
      const matches: RouteMatch[] = []
      for (const [at, { slot }] of ranked
        .slice(0, Math.min(Math.max(1, Math.trunc(limit) || DEFAULT_LIMIT), MAX_LIMIT))
        .entries()) {
        const tool = corpus.tool(slot)
        if (!tool) continue
        matches.push({ server: tool.server, tool: tool.name, confidence: sure[at] ?? 0, description: tool.description })
      }
      const [first] = ranked
      const hasTool =
        first?.exact === true || (first !== undefined && isFitted(first) && !isSmallTalk(request) && isServed(evidence))
      const isBelow = (sure[0] ?? 0) < (threshold ?? MIN_CONFIDENCE)
      const abstained = matches.length === 0 || isBelow || (threshold === undefined && !hasTool)
      return { matches, abstained, ...(recalled > 0 ? { recalled } : {}) }
    },
    learn: (example) => usage.learn(example, toolKey(example.server, example.tool)),
    usage: () => usage.examples(),
    forgetUsage: () => usage.clear()
  }
}
