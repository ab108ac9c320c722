/** How much a model thinks before it answers, where it can. */
export const EFFORTS = ['off', 'low', 'medium', 'high'] as const
export type Effort = (typeof EFFORTS)[number]
