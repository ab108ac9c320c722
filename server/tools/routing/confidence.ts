/**
 * From evidence to the probability that the first answer is right: a logistic regression whose weights
 * `bench/fit-confidence.ts` fits on half of the requests (by hash) of several public data sets, mixed.
 */

/** In the order of EVIDENCE_NAMES. */
const WEIGHTS: readonly number[] = [
  -3.636, // bias
  0.496, // margin
  1.379, // marginToFifth
  0.597, // strength
  2.22, // coverage
  0.075, // nameCoverage
  -0.362, // nearTies
  0.829, // requestLength
  0.386, // sameServer
  0.358, // restricted
  1.962, // usageShare
  2.61, // usageMargin
  1.391, // nearestRequest
  -0.751 // agreement
]

/** A tool named in the request is what was asked for, unless the name was meant otherwise. */
export const NAMED = 0.97

export function confidenceOf(evidence: readonly number[], weights: readonly number[] = WEIGHTS): number {
  let logit = 0
  evidence.forEach((value, at) => {
    logit += value * (weights[at] ?? 0)
  })
  return 1 / (1 + Math.exp(-logit))
}
