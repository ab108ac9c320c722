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
    ...[-3.516, 1.345, 1.61, 0.245, 2.012, 0.054, -0.519, 0.826, 0.701, 0.717],
    ...[-0.536, -0.223, 0.371, -0.753, -0.6, 0.439, 3.307, 1.21, -0.435]
  ],
  served: [...[-2.847, 1.047, 0, -1.618, 2.127, 2.183, 0, 0, 0, 0], ...[0, 2.263, 0, 0, 0, 0.976, 2.92, 7.216, 0]],
  servedFrom: 0.229
}

export const WITH_MEANING: ModelWeights = {
  right: [
    ...[-3.203, -0.394, -0.001, -1.008, 0.946, 0.155, -0.37, 0.175, 0.187, 0.683],
    ...[-0.478, -0.372, 0.122, -0.835, 0.257, -0.1, 0.335, 0.784, -0.154, -0.115],
    ...[-0.127, 3.713, -0.234, 2.579, 1.81, 0.357]
  ],
  served: [
    ...[-4.819, -0.036, 0, -2.192, 1.003, 0.833, 0, 0, 0, 0],
    ...[0, 0.12, 0, 0, 0, 0.607, 1.672, 5.642, 0, -0.233],
    ...[-0.431, 4.893, 5.895, -0.142, 2.643, 0]
  ],
  servedFrom: 0.227
}
