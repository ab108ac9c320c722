/** One live MCP client: a started and greeted server, local or remote, whose tools have been listed. */
import type { Client, DiscoverResult, ProgressCallback } from '@modelcontextprotocol/client'
import type { ServerEntry } from '../../catalog/server-entry.ts'
import type { StoredServer, StoredTool } from '../../catalog/stored-tools.ts'
import { AppError } from '../../lib/errors.ts'
import type { Caller } from '../caller.ts'
import { callFailure } from './call-failure.ts'
import type { ChildTransport } from './child-transport.ts'
import { rawResult } from './raw-result.ts'
import { readTools } from './read-tools.ts'

export type Verdict = NonNullable<StoredServer['verdict']>

export interface CallInput {
  caller: Caller
  tool: string
  args: Record<string, unknown>
  /** The call has effects and is not known to be repeatable. */
  careful: boolean
  signal: AbortSignal
  onProgress?: ProgressCallback | undefined
  meta?: Record<string, unknown> | undefined
}

export type RawResult = Record<string, unknown>

const MAX_PAGES = 64
const MAX_TOOLS = 1000
const PULSE_MS = 3000

export class LiveServer {
  tools: StoredTool[] = []
  readonly verdict: Verdict | undefined
  readonly #entry: ServerEntry
  readonly #client: Client
  /** Of a local server only. */
  readonly #transport: ChildTransport | undefined
  #open = true

  constructor(entry: ServerEntry, client: Client, transport: ChildTransport | undefined) {
    this.#entry = entry
    this.#client = client
    this.#transport = transport
    this.verdict = verdictOf(client)
  }

  get isOpen(): boolean {
    return this.#open && (this.#transport?.isOpen ?? true)
  }

  get pid(): number | undefined {
    return this.#transport?.pid
  }

  get endReason(): string | undefined {
    return this.#transport?.reason
  }

  async list(signal?: AbortSignal): Promise<StoredTool[]> {
    const { name, timeouts } = this.#entry
    const listed: unknown[] = []
    let cursor: unknown
    try {
      for (let page = 0; page < MAX_PAGES; page++) {
        const params = cursor === undefined ? {} : { cursor }
        const options = { timeout: timeouts.listMs, ...(signal ? { signal } : {}) }
        const answer = await this.#client.request({ method: 'tools/list', params }, rawResult, options)
        if (!Array.isArray(answer.tools))
          throw new AppError('unavailable', 'child_answer_invalid', `"${name}" lists no tools.`)
        listed.push(...answer.tools)
        cursor = answer.nextCursor
        if (typeof cursor !== 'string' || listed.length >= MAX_TOOLS) break
      }
    } catch (error) {
      throw callFailure(name, 'the request for its tools', error, signal)
    }
    this.tools = readTools(listed.slice(0, MAX_TOOLS))
    return this.tools
  }

  async call(input: CallInput): Promise<RawResult> {
    const { tool, args, careful, signal, onProgress, meta } = input
    const { name, timeouts } = this.#entry
    const params = { name: tool, arguments: args, ...(meta ? { _meta: meta } : {}) }
    this.#transport?.assertAlive(careful)
    try {
      if (this.#transport && this.verdict?.kind === 'legacy') {
        return await this.#transport.calls.call(params, { timeoutMs: timeouts.callMs, signal, onProgress })
      }
      return await this.#callThroughSdk(params, { signal, onProgress })
    } catch (error) {
      throw callFailure(name, tool, error, signal)
    }
  }

  async #callThroughSdk(
    params: { name: string; arguments: Record<string, unknown> },
    { signal, onProgress }: Pick<CallInput, 'signal' | 'onProgress'>
  ): Promise<RawResult> {
    const options = {
      timeout: this.#entry.timeouts.callMs,
      resetTimeoutOnProgress: true,
      signal,
      ...(onProgress ? { onprogress: onProgress } : {})
    }
    if (this.#transport) return this.#client.request({ method: 'tools/call', params }, rawResult, options)
    // Over HTTP a tool may want parameters as headers, which this way of calling sees to.
    const definition = this.tools.find(({ name }) => name === params.name)
    const inputSchema = { ...definition?.inputSchema, type: 'object' as const }
    return this.#client.callTool(params, { ...options, toolDefinition: { name: params.name, inputSchema } })
  }

  /** Whether it still answers anything at all. */
  async hasPulse(): Promise<boolean> {
    if (!this.isOpen) return false
    try {
      await this.#client.request({ method: 'tools/list', params: {} }, rawResult, { timeout: PULSE_MS })
      return true
    } catch {
      return false
    }
  }

  async close(): Promise<void> {
    this.#open = false
    await this.#client.close().catch(() => {})
    await this.#transport?.close()
  }
}

function verdictOf(client: Client): Verdict | undefined {
  const era = client.getProtocolEra()
  if (era === 'legacy') return { kind: 'legacy' }
  const discover: DiscoverResult | undefined = client.getDiscoverResult()
  return era === 'modern' && discover ? { kind: 'modern', discover: { ...discover } } : undefined
}
