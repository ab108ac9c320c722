/** Metrics of the stdio gateway, which has no address to scrape: the text of `/metrics` in a file, for a collector that reads such files. */
import { randomUUID } from 'node:crypto'
import { lstat, open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { ToolObserver } from '../../calls/tool-observer.ts'
import { createMetrics, type ServerFigures } from '../../http/metrics.ts'
import { hasCode, messageOf } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import type { Logger } from '../../lib/logger.ts'

export interface MetricsFile {
  observer: Required<ToolObserver>
  watchServers(read: () => ServerFigures[]): void
  /** Writes the file for the last time. */
  close(): Promise<void>
}

const EVERY_MS = 15_000
const MAX_BYTES = 1024 * 1024

export function openMetricsFile(path: string, logger: Logger, everyMs = EVERY_MS): MetricsFile {
  const file = resolve(path)
  const { observer, watchServers, text } = createMetrics()
  let problem: string | undefined
  let writing = Promise.resolve()
  const write = () => {
    writing = writing
      .then(async () => replaceFile(file, await text()))
      .then(() => {
        problem = undefined
      })
      .catch((error) => {
        // A call must not fail because its metrics can't be written. The same reason is reported once.
        if (messageOf(error) !== problem) logger.warn(`METRICS_FILE ${file} can't be written: ${messageOf(error)}.`)
        problem = messageOf(error)
      })
    return writing
  }
  const timer = setInterval(() => void write(), everyMs).unref()
  void write()
  return {
    observer,
    watchServers,
    close() {
      clearInterval(timer)
      return write()
    }
  }
}

/** In one step, so that a reader never sees half of it. Never through a link, which another user may have put there. */
async function replaceFile(file: string, text: string): Promise<void> {
  if (Buffer.byteLength(text) > MAX_BYTES) throw new Error(`the metrics are larger than ${MAX_BYTES} bytes`)
  const found = await lstat(file).catch((error) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  if (found && !found.isFile()) throw new Error('it is not a regular file')
  makeFolder(dirname(file))
  const draft = `${file}.${randomUUID()}.new`
  // Collectors run as another user, and nothing in it is secret.
  const handle = await open(draft, 'wx', 0o644)
  try {
    await handle.writeFile(text)
    await handle.close()
    await rename(draft, file)
  } finally {
    await handle.close().catch(() => {})
    await rm(draft, { force: true })
  }
}
