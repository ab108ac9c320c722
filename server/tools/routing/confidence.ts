/**
 * From evidence to the probability that the first answer is right: a logistic regression whose weights
 * `bench/fit-confidence.ts` fits on half of the requests (by hash) of several public data sets, mixed.
 */

/** In the order of EVIDENCE_NAMES. */
const WEIGHTS: readonly number[] = [
  -3.694, // bias
  0.53, // margin
  1.229, // marginToFifth
  0.986, // strength
  1.488, // coverage
  -0.039, // nameCoverage
  -0.272, // nearTies
  0.913, // requestLength
  0.275, // sameServer
  0.381, // restricted
  1.235, // usageShare
  2.405, // usageMargin
  0.99, // nearestRequest
  -0.389 // agreement
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
