const EXIT_MS = 500

/** All is saved and said: whatever still holds on to the loop must not hold on to who waits for the end. */
export function leaveSoon(): void {
  setTimeout(() => process.exit(0), EXIT_MS).unref()
}
