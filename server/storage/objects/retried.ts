import { setTimeout as delay } from 'node:timers/promises'
import { AppError, messageOf } from '../../lib/errors.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'

/** Limits for one request. The time for its content is added to both. */
export interface RequestLimits {
  attemptMs: number
  totalMs: number
}

export const DEFAULT_LIMITS: RequestLimits = { attemptMs: 10_000, totalMs: 20_000 }

/** A slow line still has time for its content. */
const BYTES_PER_MS = 256
const NO_ANSWER = new Error('no answer')
const BACKOFF = { firstMs: 50, maxMs: 2000 }

/** How a failed attempt is treated. `skewed` is tried again at once the first time: the client has corrected its clock meanwhile. */
export type NextStep = 'retry' | 'skewed' | 'final'

interface Retried<T> {
  what: string
  /** Bytes that go over the line. */
  bytes: number
  limits: RequestLimits
  nextStep: (error: unknown) => NextStep
  attempt: (signal: AbortSignal) => Promise<T>
}

/** Tries until it succeeds, the time is over, or trying again makes no sense. */
export async function retried<T>({ what, bytes, limits, nextStep, attempt }: Retried<T>): Promise<T> {
  const contentMs = Math.ceil(bytes / BYTES_PER_MS)
  const until = performance.now() + limits.totalMs + contentMs
  for (let tries = 1; ; tries++) {
    const leftMs = until - performance.now()
    const signal = AbortSignal.timeout(Math.max(1, Math.min(limits.attemptMs + contentMs, Math.ceil(leftMs))))
    try {
      return await attempt(signal)
    } catch (error) {
      const decision = signal.aborted ? 'retry' : nextStep(error)
      if (decision === 'final') throw refused(what, error)
      const waitMs = decision === 'skewed' && tries === 1 ? 0 : backoffMs(tries, BACKOFF)
      if (performance.now() + waitMs >= until) throw unavailable(what, signal.aborted ? NO_ANSWER : error)
      await delay(waitMs)
    }
  }
}

function unavailable(what: string, error: unknown): AppError {
  const message = `The object store did not ${what} in time (${reasonOf(error)}); check that S3_ENDPOINT can be reached from this machine.`
  return new AppError('unavailable', 'objects_unavailable', message, { cause: error })
}

function refused(what: string, error: unknown): AppError {
  const message = `The object store refused to ${what} (${reasonOf(error)}); check CHECKPOINT_STORE, S3_ENDPOINT, S3_REGION and the credentials.`
  return new AppError('unavailable', 'objects_refused', message, { cause: error })
}

/** Many services send no message, only a name. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error).slice(0, 200)
  const message = messageOf(error)
  const isTelling = message !== '' && message !== 'UnknownError'
  return (isTelling && error.name !== 'Error' ? `${error.name}: ${message}` : isTelling ? message : error.name).slice(
    0,
    200
  )
}
