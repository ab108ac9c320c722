/**
 * Computes two probabilities from the evidence: that the first answer is right, and that any tool serves the request at all. Both are
 * logistic regressions, with weights that `bench/fit-confidence.ts` fits on half of the requests (by hash) of several public data sets,
 * mixed. Without embeddings, the values about meaning are missing, and other weights count.
 */

import { type ModelWeights, WITH_MEANING, WORDS_ALONE } from './confidence-weights.ts'
import { EVIDENCE } from './evidence.ts'

/** If the request names a tool, that tool is almost certainly meant. */
export const NAMED = 0.97

function weightsFor(evidence: readonly number[]): ModelWeights {
  return evidence.length === EVIDENCE.length ? WITH_MEANING : WORDS_ALONE
}

function probability(evidence: readonly number[], weights: readonly number[]): number {
  const logit = evidence.reduce((sum, value, at) => sum + value * (weights[at] ?? 0), 0)
  return 1 / (1 + Math.exp(-logit))
}

export function confidenceOf(evidence: readonly number[]): number {
  return probability(evidence, weightsFor(evidence).right)
}

/** Few of the requests that a tool serves fail this, and many of the others. */
export function isServed(evidence: readonly number[]): boolean {
  const { served, servedFrom } = weightsFor(evidence)
  return probability(evidence, served) >= servedFrom
}
