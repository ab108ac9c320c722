import type { RunLog, RunState } from './run-log.ts'

/** The state of a run as its caller sees it. */
export interface RunReport {
  runId: string
  status: 'running' | 'waiting' | 'ended'
  state: RunState
  expiresAt: number
  /** Why it has not begun, or does not continue yet. */
  queued?: string | undefined
}

/** A run that this process drives. */
export interface ActiveRun {
  log: RunLog
  owner: string
  queued: string | undefined
  expiresAt: number
  stop: AbortController
  /** Resolves when the run has ended, waits without a realm, or can't continue for now. */
  settled: Promise<void>
  isWaiting: boolean
  listeners: Set<() => void>
  onProgress: Set<(text: string) => void>
}

export async function settledOrWaiting(run: ActiveRun, ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  run.listeners.add(resolve)
  signal?.addEventListener('abort', () => resolve(), { once: true })
  try {
    if (!run.isWaiting && !signal?.aborted) await Promise.race([promise, run.settled])
  } finally {
    clearTimeout(timer)
    run.listeners.delete(resolve)
  }
}
