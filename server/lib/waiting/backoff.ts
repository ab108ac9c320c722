export interface BackoffOptions {
  firstMs: number
  maxMs: number
  /** 0 gives no jitter, 1 a delay anywhere between 0 and the full step. */
  jitter?: number
  random?: () => number
}

/** The wait before try number `attempt` (1 is the first retry): exponential, capped, with jitter. */
export function backoffMs(attempt: number, options: BackoffOptions): number {
  const { firstMs, maxMs, jitter = 0.5, random = Math.random } = options
  const step = Math.min(maxMs, firstMs * 2 ** (attempt - 1))
  return Math.round(step * (1 - jitter * random()))
}
