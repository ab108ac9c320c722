const EXIT_MS = 500

/** Exits although something still keeps the event loop alive, because all work is done. Keeps the exit code. */
export function leaveSoon(): void {
  setTimeout(() => process.exit(), EXIT_MS).unref()
}
