export interface StopSignals {
  /** Resolves with the first signal. */
  stop: Promise<void>
  /** Fires with the first signal. */
  stopping: AbortSignal
  /** Fires with the second: shorten what can be shortened. */
  hurry: AbortSignal
  /** Fires with the third. */
  atOnce: AbortSignal
}

/** One Ctrl-C may arrive twice: from the terminal, and again from npm. */
const SAME_MS = 500

/** Includes SIGHUP, because sandboxes must also be removed when the terminal is closed. */
export function listenForStop(target: NodeJS.EventEmitter = process): StopSignals {
  const stop = Promise.withResolvers<void>()
  const stopping = new AbortController()
  const hurry = new AbortController()
  const atOnce = new AbortController()
  let count = 0
  let countedAt = Number.NEGATIVE_INFINITY
  const onSignal = () => {
    const now = performance.now()
    if (now - countedAt < SAME_MS) return
    countedAt = now
    count += 1
    stop.resolve()
    stopping.abort()
    if (count === 2) hurry.abort()
    if (count === 3) atOnce.abort()
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) target.on(signal, onSignal)
  return { stop: stop.promise, stopping: stopping.signal, hurry: hurry.signal, atOnce: atOnce.signal }
}
