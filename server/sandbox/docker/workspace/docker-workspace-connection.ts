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
import type { SieveCounters } from './message-sieve.ts'
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
/** Walking or writing a full workspace on half a CPU. */
const FILES_MS = 60_000
/**
 * The engine may keep a stream open whose server is gone (seen with gVisor, in a container killed as it woke up). So it is asked while
 * a call waits, and believed when it says so twice: the last answers may still be on their way.
 */
const LOOK_EVERY_MS = 2000
/**
 * And the server is asked too: a command can stop it with a signal, and the engine would call it running for ever. Long enough for
 * one that gets its share of a processor beside a hundred others.
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

  /** What the other side wrote that it should not have. */
  get counters(): Readonly<SieveCounters> {
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
      // Not client.callTool(): that would list the tools first and compile a validator for each.
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
      // An engine that does not answer says nothing about the server.
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
    }, LOOK_EVERY_MS)
    return () => {
      isOver = true
      clearInterval(timer)
    }
  }

  /** Anything it says will do. */
  async #answers(): Promise<boolean> {
    const asked = this.#client.request({ method: 'ping', params: {} }, emptyResult, { timeout: SILENCE_MS })
    return asked.then(
      () => true,
      (error) => !isAppError(translateCallError(error, 'ping'), 'call_timeout')
    )
  }
}
