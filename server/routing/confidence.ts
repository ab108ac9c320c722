/**
 * Computes the probability that the first answer is right: a logistic regression whose weights `bench/fit-confidence.ts` fits on
 * half of the requests (by hash) of several public data sets, mixed.
 */

/** In the order of EVIDENCE_NAMES. */
const WEIGHTS: readonly number[] = [
  -3.375, // bias
  1.248, // margin
  1.729, // marginToFifth
  0.377, // strength
  1.87, // coverage
  0.116, // nameCoverage
  -0.43, // nearTies
  0.817, // requestLength
  0.71, // asks
  0.585, // sameServer
  -0.401, // restricted
  -0.365, // known
  0.357, // crowd
  -0.74, // namesakes
  -0.726, // corpusSize
  0.361, // usageShare
  3.313, // usageMargin
  1.106, // nearestRequest
  -0.464 // agreement
]

/** If the request names a tool, that tool is almost certainly meant. */
export const NAMED = 0.97

export function confidenceOf(evidence: readonly number[], weights: readonly number[] = WEIGHTS): number {
  let logit = 0
  evidence.forEach((value, at) => {
    logit += value * (weights[at] ?? 0)
  })
  return 1 / (1 + Math.exp(-logit))
}
