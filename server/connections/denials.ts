import type { ServerEntry } from '../catalog/server-entry.ts'
import type { Logger } from '../lib/logger.ts'
import type { ServerLog } from './server-log.ts'
import type { ToolRecords } from './tool-records.ts'

export interface DenialsOptions {
  entry: ServerEntry
  log: ServerLog
  logger: Logger
  index: Pick<ToolRecords, 'denied'>
}

const MAX_TARGETS = 50
const OTHERS = 'others'

/** Counts refused connections of a server in a sandbox, by host. Logs the first one and every tenfold. */
export class Denials {
  readonly #options: DenialsOptions
  readonly #counts = new Map<string, number>()

  constructor(options: DenialsOptions) {
    this.#options = options
  }

  readonly add = (target: string, reason: string): void => {
    const { entry, log, logger, index } = this.#options
    const key = this.#counts.has(target) || this.#counts.size < MAX_TARGETS ? target : OTHERS
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    if (!Number.isInteger(Math.log10(count))) return
    const text = `refused ${key}: ${reason}${count > 1 ? ` (${count} times)` : ''}`
    log.push(Buffer.from(`[network] ${text}\n`))
    logger.warn({ server: entry.name, target: key, count }, `The network of "${entry.name}": ${text}.`)
    index.denied(entry, key, count)
  }
}
