import { closeSync, constants, futimesSync, openSync } from 'node:fs'
import { join } from 'node:path'

const TICK_MS = 20_000
/** Counted in ticks and not by the clock: a paused container's clock continues while its owner can't send anything. */
const QUIET_TICKS = 90
/** A command can replace the file with a pipe; opening that must not wait for a reader. */
const { O_WRONLY, O_CREAT, O_NONBLOCK, O_NOFOLLOW } = constants

/** Touches `alive` for the idle init, and calls `onSilence` when the owner has sent nothing for 30 minutes of running time. */
export function startSignOfLife(stateFolder: string, onSilence: () => void, tickMs = TICK_MS): { heard: () => void } {
  let quiet = 0
  touch(stateFolder)
  const timer = setInterval(() => {
    touch(stateFolder)
    quiet += 1
    if (quiet >= QUIET_TICKS) onSilence()
  }, tickMs)
  timer.unref()
  return {
    heard: () => {
      quiet = 0
    }
  }
}

function touch(stateFolder: string): void {
  try {
    const fd = openSync(join(stateFolder, 'alive'), O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW)
    const now = Date.now() / 1000
    futimesSync(fd, now, now)
    closeSync(fd)
  } catch {
    // A full or missing state folder must not end the server: its owner can still reach it.
  }
}
