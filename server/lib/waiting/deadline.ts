import { AppError } from '../errors.ts'
import { cancelled } from './cancelled.ts'

export interface DeadlineOptions {
  /** Name of the awaited thing, as it should appear in the message: "the container engine to start a container". */
  what: string
  ms: number
  signal?: AbortSignal | undefined
  code?: string
}

/**
 * Runs work under a deadline. The signal given to the work fires at the deadline, with the caller's own signal, or once the
 * work has failed; the returned promise settles then even when the work ignores it.
 */
export async function withDeadline<T>(options: DeadlineOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { what, ms, signal, code = 'deadline_exceeded' } = options
  const controller = new AbortController()
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>()
  const end = (error: AppError) => {
    stop(error)
    controller.abort(error)
  }
  const onAbort = () => end(cancelled(signal?.reason, `Cancelled: ${what}.`))
  const timer = setTimeout(() => end(new AppError('timeout', code, `Waited ${formatMs(ms)} for ${what}.`)), ms)
  if (signal?.aborted) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  stopped.catch(() => {})
  try {
    return await Promise.race([work(controller.signal), stopped])
  } catch (error) {
    // Cancel the rest of the failed work: a request that was refused may still hold its socket.
    controller.abort(error)
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

function formatMs(ms: number): string {
  return ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`
}
