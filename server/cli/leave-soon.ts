const EXIT_MS = 500

/** All is saved and said: whatever still holds on to the loop must not hold on to who waits for the end, nor change its exit code. */
export function leaveSoon(): void {
  setTimeout(() => process.exit(), EXIT_MS).unref()
}
