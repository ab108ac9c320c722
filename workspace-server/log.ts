const MAX_LOG_CHARS = 2000

/** Writes one line to stderr, which the owner keeps as a bounded log; stdout belongs to the protocol. */
export function log(message: string, error?: unknown): void {
  const detail =
    error === undefined ? '' : `: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
  process.stderr.write(`${`${message}${detail}`.slice(0, MAX_LOG_CHARS).replaceAll('\n', ' | ')}\n`)
}
