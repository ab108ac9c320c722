/**
 * All live MCP clients of this process, by server. Owns that there is one connection per server and that at most a few start at
 * once; a connection's own life is in `server-connection.ts`. Invariant: after `close` no child of ours is left.
 */
import { join } from 'node:path'
import type { SecretSource } from '../../catalog/placeholders.ts'
import type { ServerEntry } from '../../catalog/server-entry.ts'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ToolIndex } from '../tool-index.ts'
import { ChildProcesses } from './child-processes.ts'
import type { CallInput, RawResult } from './live-server.ts'
import { openServer } from './open-server.ts'
import { ServerConnection, type ServerState } from './server-connection.ts'
import { ServerLog } from './server-log.ts'
import { StartGate } from './start-gate.ts'

export interface ConnectionsOptions {
  index: ToolIndex
  secrets: () => SecretSource
  /** Of which children get a few harmless variables, and no more. */
  environment: Record<string, string | undefined>
  /** Folder for what servers write to stderr. */
  logDir?: string | undefined
  version: string
  logger: Logger
}

const STARTING_AT_ONCE = 4

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #processes: ChildProcesses
  readonly #gate = new StartGate(STARTING_AT_ONCE)
  readonly #connections = new Map<string, ServerConnection>()
  readonly #calls = new Map<string, number>()
  #closed = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
    this.#processes = new ChildProcesses(options.environment)
  }

  get childPids(): number[] {
    return this.#processes.pids
  }

  state(server: string): ServerState | undefined {
    return this.#connections.get(server)?.state
  }

  /** Made since this process began. */
  calls(server: string): number {
    return this.#calls.get(server) ?? 0
  }

  logTail(server: string): string {
    return this.#connections.get(server)?.log.tail() ?? ''
  }

  async list(server: string, signal: AbortSignal) {
    return this.#of(server).list(signal)
  }

  /** Asks the server itself, whatever is known of it; one that rests after failures is tried at once. */
  async test(server: string, signal: AbortSignal) {
    if (this.state(server)?.state === 'stopped') this.retire(server)
    return this.#of(server).test(signal)
  }

  async call(server: string, input: CallInput): Promise<{ result: RawResult; attempts: number }> {
    const connection = this.#of(server)
    this.#calls.set(server, this.calls(server) + 1)
    return connection.call(input)
  }

  /** The server's entry has changed or gone: what runs of it finishes its calls and ends. */
  retire(server: string): void {
    const connection = this.#connections.get(server)
    this.#connections.delete(server)
    void connection?.retire()
  }

  async stop(server: string): Promise<void> {
    await this.#connections.get(server)?.stop()
  }

  async close(): Promise<void> {
    this.#closed = true
    const all = [...this.#connections.values()]
    this.#connections.clear()
    await this.#processes.stopAll()
    await Promise.all(all.map((connection) => connection.stop()))
  }

  #of(server: string): ServerConnection {
    if (this.#closed) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    const entry = this.#options.index.entry(server)
    if (entry === undefined) throw unknownServer(server)
    let connection = this.#connections.get(server)
    if (connection && connection.entry.fingerprint !== entry.fingerprint) {
      this.retire(server)
      connection = undefined
    }
    if (!connection) {
      connection = this.#create(entry)
      this.#connections.set(server, connection)
    }
    return connection
  }

  #create(entry: ServerEntry): ServerConnection {
    const { index, secrets, logDir, version, logger } = this.#options
    const log = new ServerLog(logDir === undefined ? undefined : join(logDir, `${encodeURIComponent(entry.name)}.log`))
    return new ServerConnection({
      entry,
      log,
      logger,
      toolsSeen: () => index.tools(entry.name)?.length ?? 0,
      gate: this.#gate,
      open: (signal, onToolsChanged) => {
        const verdict = index.verdict(entry.name)
        const processes = this.#processes
        return openServer({ entry, processes, secrets, log, version, verdict, signal, onToolsChanged })
      },
      onListed: (tools, facts) => index.listed(entry, tools, facts),
      onFailed: (error) => index.failed(entry, error.message)
    })
  }
}

export function unknownServer(server: string): AppError {
  const message = `There is no server "${server.slice(0, 100)}" in the registry, or it is switched off.`
  return new AppError('not-found', 'unknown_server', message)
}
