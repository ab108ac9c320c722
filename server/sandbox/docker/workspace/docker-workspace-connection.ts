import type { Client } from '@modelcontextprotocol/client'
import {
  type ChangesParams,
  type ChangesResult,
  type FetchParams,
  type FetchResult,
  type LimitsResult,
  MAX_RESOLVED_PATHS,
  type PathTarget,
  type RestoreParams,
  type RestoreResult,
  TARGET_META,
  WORKSPACE_METHODS
} from '../../../../workspace-server/protocol.ts'
import { isAppError } from '../../../lib/errors.ts'
import type { CallOptions, ToolDefinition, ToolResult, WorkspaceConnection } from '../../port.ts'
import { translateCallError } from './call-error.ts'
import { connectionLost, type DockerStreamTransport } from './docker-stream-transport.ts'
import type { FilterCounters } from './message-filter.ts'
import { readOutputChunk } from './output-chunk.ts'
import {
  changesResult,
  emptyResult,
  fetchResult,
  limitsResult,
  type ResultSchema,
  resolveResult,
  restoreResult,
  toolList,
  toolResult
} from './result-schema.ts'

const QUICK_MS = 10_000
/** Enough to scan or write a full workspace with half a CPU. */
const FILES_MS = 60_000
/**
 * The engine may keep a stream open although its server is gone (seen with gVisor, in a container killed while it woke up). So we
 * ask the engine during a call, and believe it when it says so twice: the last answers may still be in transit.
 */
const CHECK_EVERY_MS = 2000
/**
 * We also ping the server: a command can stop it with a signal, and the engine would report it as running forever. The time is
 * long enough for a server that shares a processor with a hundred others.
 */
const SILENCE_MS = 30_000

type Params = Record<string, unknown>

export class DockerWorkspaceConnection implements WorkspaceConnection {
  readonly containerId: string
  readonly #client: Client
  readonly #transport: DockerStreamTransport
  readonly #isServed: () => Promise<boolean>

  constructor(containerId: string, client: Client, transport: DockerStreamTransport, isServed: () => Promise<boolean>) {
    this.containerId = containerId
    this.#client = client
    this.#transport = transport
    this.#isServed = isServed
  }

  get closed(): Promise<void> {
    return this.#transport.closed
  }

  get isOpen(): boolean {
    return this.#transport.isOpen
  }

  get isTampered(): boolean {
    return this.counters.forged > 0
  }

  /** Counts what the other side wrote and should not have. */
  get counters(): Readonly<FilterCounters> {
    return this.#transport.counters
  }

  async listTools(): Promise<ToolDefinition[]> {
    return this.#request('tools/list', {}, toolList, { timeoutMs: QUICK_MS })
  }

  async callTool(name: string, args: Params, options: CallOptions): Promise<ToolResult> {
    const meta = options.expected ? { _meta: { [TARGET_META]: options.expected } } : {}
    return this.#request('tools/call', { name, arguments: args, ...meta }, toolResult, options)
  }

  async claim(epoch: number): Promise<void> {
    await this.#request(WORKSPACE_METHODS.claim, { epoch }, emptyResult, { timeoutMs: QUICK_MS })
  }

  async limits(): Promise<LimitsResult> {
    return this.#request(WORKSPACE_METHODS.limits, {}, limitsResult, { timeoutMs: QUICK_MS })
  }

  async changes(params: ChangesParams): Promise<ChangesResult> {
    return this.#request(WORKSPACE_METHODS.changes, { ...params }, changesResult, { timeoutMs: FILES_MS })
  }

  async fetch(params: FetchParams): Promise<FetchResult> {
    return this.#request(WORKSPACE_METHODS.fetch, { ...params }, fetchResult, { timeoutMs: FILES_MS })
  }

  async restore(params: RestoreParams): Promise<RestoreResult> {
    return this.#request(WORKSPACE_METHODS.restore, { ...params }, restoreResult, { timeoutMs: FILES_MS })
  }

  async resolve(paths: string[]): Promise<PathTarget[]> {
    const targets: PathTarget[] = []
    for (let from = 0; from < paths.length; from += MAX_RESOLVED_PATHS) {
      const some = paths.slice(from, from + MAX_RESOLVED_PATHS)
      const schema = resolveResult(some.length)
      targets.push(
        ...(await this.#request(WORKSPACE_METHODS.resolve, { paths: some }, schema, { timeoutMs: QUICK_MS }))
      )
    }
    return targets
  }

  async ping(): Promise<void> {
    await this.#request('ping', {}, emptyResult, { timeoutMs: QUICK_MS })
  }

  stderr(): string {
    return this.#transport.stderr()
  }

  async close(): Promise<void> {
    await this.#transport.close()
  }

  async #request<T>(method: string, params: Params, schema: ResultSchema<T>, options: CallOptions): Promise<T> {
    const { signal, timeoutMs, onOutput } = options
    if (!this.isOpen) throw connectionLost(undefined, false)
    const onprogress =
      onOutput &&
      ((progress: { message?: unknown }) => {
        const chunk = readOutputChunk(progress.message)
        if (chunk) onOutput(chunk)
      })
    const endWatch = this.#watch()
    try {
      // client.callTool() would list the tools first and compile a validator for each.
      return await this.#client.request({ method, params }, schema, {
        timeout: timeoutMs,
        ...(signal ? { signal } : {}),
        ...(onprogress ? { onprogress } : {})
      })
    } catch (error) {
      throw translateCallError(error, method, signal)
    } finally {
      endWatch()
    }
  }

  #watch(): () => void {
    let isOver = false
    let isLooking = false
    let isAsking = false
    let timesGone = 0
    const look = async () => {
      // If the engine does not respond, we learn nothing about the server.
      const isServed = await this.#isServed().catch(() => true)
      timesGone = isServed ? 0 : timesGone + 1
      if (timesGone === 2) await this.close()
      isLooking = false
    }
    const ask = async () => {
      const answers = await this.#answers()
      if (!answers && !isOver) await this.close()
      isAsking = false
    }
    const timer = setInterval(() => {
      if (!isLooking) void look()
      if (!isAsking) void ask()
      isLooking = isAsking = true
    }, CHECK_EVERY_MS)
    return () => {
      isOver = true
      clearInterval(timer)
    }
  }

  /** Any response will do, even an error. */
  async #answers(): Promise<boolean> {
    const asked = this.#client.request({ method: 'ping', params: {} }, emptyResult, { timeout: SILENCE_MS })
    return asked.then(
      () => true,
      (error) => !isAppError(translateCallError(error, 'ping'), 'call_timeout')
    )
  }
}
