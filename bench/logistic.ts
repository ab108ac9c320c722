/** Logistic regression with a small ridge, by Newton's method. */

export interface Sample {
  values: number[]
  /** 0 or 1. */
  target: number
  weight: number
}

const RIDGE = 0.0005
const ROUNDS = 15

export function probability(values: readonly number[], weights: readonly number[]): number {
  const logit = values.reduce((sum, value, at) => sum + value * (weights[at] ?? 0), 0)
  return 1 / (1 + Math.exp(-logit))
}

/** Gaussian elimination; the ridge keeps the matrix far from singular. */
function solve(matrix: number[][], right: number[]): number[] {
  const rows = matrix.map((row, at) => [...row, right[at] ?? 0])
  for (let at = 0; at < rows.length; at += 1) {
    const pivot = rows[at]!
    for (const row of rows) {
      if (row === pivot) continue
      const factor = (row[at] ?? 0) / (pivot[at] ?? 1)
      for (let column = at; column < row.length; column += 1) row[column]! -= factor * (pivot[column] ?? 0)
    }
  }
  return rows.map((row, at) => (row.at(-1) ?? 0) / (row[at] ?? 1))
}

export function fitLogistic(samples: readonly Sample[]): number[] {
  let weights: number[] = (samples[0]?.values ?? []).map(() => 0)
  const total = samples.reduce((sum, { weight }) => sum + weight, 0)
  for (let round = 0; round < ROUNDS; round += 1) {
    const slope = weights.map((value) => RIDGE * value)
    const curve = weights.map((_, at) => weights.map((__, other) => (at === other ? RIDGE : 0)))
    for (const { values, target, weight } of samples) {
      const sure = probability(values, weights)
      const share = weight / total
      values.forEach((value, at) => {
        slope[at]! += (sure - target) * share * value
        for (let other = 0; other < values.length; other += 1) {
          curve[at]![other]! += sure * (1 - sure) * share * value * (values[other] ?? 0)
        }
      })
    }
    const step = solve(curve, slope)
    weights = weights.map((value, at) => value - (step[at] ?? 0))
  }
  return weights
}
