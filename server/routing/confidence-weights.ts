/** Written by `bench/fit-confidence.ts`; in the order of `EVIDENCE` (`evidence.ts`). */

export interface ModelWeights {
  /** For: the first answer is right. */
  right: readonly number[]
  /** For: any tool serves the request. */
  served: readonly number[]
  /** Below this probability, no tool serves it. */
  servedFrom: number
}

export const WORDS_ALONE: ModelWeights = {
  right: [
    ...[-3.574, 1.153, 1.755, 0.338, 2.073, 0.018, -0.486, 0.833, 0.656, 0.672],
    ...[-0.552, -0.162, 0.371, -0.776, -0.67, 0.478, 3.2, 0.955, -0.266, 0],
    ...[0, 0, 0]
  ],
  served: [
    ...[1.087, 0.977, 0, -2.252, 1.074, 2.059, 0, 0, 0, 0],
    ...[0, 1.344, 0, 0, 0, 1.082, 3.097, 5.948, 0, -2.827],
    ...[2.743, -1.519, -2.421]
  ],
  servedFrom: 0.26
}

export const WITH_MEANING: ModelWeights = {
  right: [
    ...[-3.119, -0.469, -0.174, -0.943, 0.925, -0.02, -0.3, 0.206, 0.146, 0.659],
    ...[-0.36, -0.609, 0.09, -0.637, 0.312, -0.081, 0.198, 0.746, -0.168, 0],
    ...[0, 0, 0, -0.134, -0.143, 3.751, -0.221, 2.577, 1.988, 0.444]
  ],
  served: [
    ...[-0.903, -0.343, 0, -3.343, -0.509, 0.885, 0, 0, 0, 0],
    ...[0, -0.086, 0, 0, 0, 0.629, 1.619, 4.431, 0, -2.895],
    ...[0.86, -0.956, -1.652, -0.258, -0.6, 4.933, 6.111, -0.146, 3.103, 0]
  ],
  servedFrom: 0.203
}
