/**
 * Computes the probability that the first answer is right: a logistic regression whose weights `bench/fit-confidence.ts` fits on
 * half of the requests (by hash) of several public data sets, mixed.
 */

/** In the order of the values of `evidenceOf`. */
export const WEIGHTS = {
  bias: -3.375,
  margin: 1.248,
  marginToFifth: 1.729,
  strength: 0.377,
  coverage: 1.87,
  nameCoverage: 0.116,
  nearTies: -0.43,
  requestLength: 0.817,
  asks: 0.71,
  sameServer: 0.585,
  restricted: -0.401,
  known: -0.365,
  crowd: 0.357,
  namesakes: -0.74,
  corpusSize: -0.726,
  usageShare: 0.361,
  usageMargin: 3.313,
  nearestRequest: 1.106,
  agreement: -0.464
}
const FITTED = Object.values(WEIGHTS)

/** If the request names a tool, that tool is almost certainly meant. */
export const NAMED = 0.97

export function confidenceOf(evidence: readonly number[], weights: readonly number[] = FITTED): number {
  let logit = 0
  evidence.forEach((value, at) => {
    logit += value * (weights[at] ?? 0)
  })
  return 1 / (1 + Math.exp(-logit))
}
