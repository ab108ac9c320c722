/** One live MCP client: a server, local or remote, that is started and initialized, with its tools listed. */

import {
  type Client,
  type DiscoverResult,
  ProtocolError,
  type ServerCapabilities,
  StreamableHTTPClientTransport
} from '@modelcontextprotocol/client'
import type { ServerEntry } from '../catalog/server-entry.ts'
import type { ServerAbout, StoredTool } from '../catalog/stored-tools.ts'
import { AppError } from '../lib/errors.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import { answerRounds } from './asking/answer-rounds.ts'
import type { CallScopes } from './asking/call-scopes.ts'
import type { ChildTransport } from './local/child-transport.ts'
import type { KnownRevision } from './tool-records.ts'
import { callFailure, withoutSecrets } from './wire/call-failure.ts'
import type { CallInput, RawResult, RequestInput } from './wire/call-input.ts'
import { calmly } from './wire/calm-progress.ts'
import { totalMs } from './wire/raw-calls.ts'
import { rawResult } from './wire/raw-result.ts'
import { readTools } from './wire/read-tools.ts'

const MAX_PAGES = 64
const MAX_TEXT = 20_000
const MAX_TOOLS = 1000
const PULSE_MS = 3000
const END_SESSION_MS = 1000

export class LiveServer {
  tools: StoredTool[] = []
  readonly revision: KnownRevision | undefined
  /** Resolves if the connection ends without `close`. */
  readonly crashed: Promise<void>
  readonly #entry: ServerEntry
  readonly #client: Client
  /** Only for a local server. */
  readonly #transport: ChildTransport | undefined
  readonly #redact: (text: string) => string
  /** Only if its calls are asked one by one. */
  readonly scopes: CallScopes | undefined
  #open = true
  #running = 0
  #onIdle: (() => void) | undefined

  constructor(
    entry: ServerEntry,
    client: Client,
    transport: ChildTransport | undefined,
    redact: (text: string) => string,
    scopes?: CallScopes
  ) {
    this.#entry = entry
    this.#client = client
    this.#transport = transport
    this.#redact = redact
    this.scopes = scopes
    this.revision = revisionOf(client)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.crashed = promise
    client.onclose = () => {
      if (this.#open) resolve()
    }
  }

  get isOpen(): boolean {
    return this.#open && (this.#transport?.isOpen ?? true)
  }

  get pid(): number | undefined {
    return this.#transport?.pid
  }

  get capabilities(): ServerCapabilities {
    return this.#client.getServerCapabilities() ?? {}
  }

  get instructions(): string | undefined {
    return this.#client.getInstructions()
  }

  /** Remembered properties of the server, besides its tools. */
  get about(): ServerAbout {
    const instructions = this.instructions?.slice(0, MAX_TEXT)
    return { capabilities: { ...this.capabilities }, ...(instructions ? { instructions } : {}) }
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
      // A server that only has resources or prompts may refuse to list tools.
      if (this.capabilities.tools !== undefined || !(error instanceof ProtocolError)) {
        throw this.#failure('the request for its tools', error, signal, false)
      }
    }
    this.tools = readTools(listed.slice(0, MAX_TOOLS))
    return this.tools
  }

  async call(input: CallInput): Promise<RawResult> {
    if (!this.scopes) return this.#call(input)
    const run = (round: CallInput) => this.#call(round)
    return this.scopes.during(input, () => (this.revision?.kind === 'modern' ? answerRounds(input, run) : run(input)))
  }

  async #call(input: CallInput): Promise<RawResult> {
    const { tool, args, mustNotRepeat, signal, onProgress, meta, retry } = input
    const { timeouts } = this.#entry
    const params = { name: tool, arguments: args, ...retry, ...(meta ? { _meta: meta } : {}) }
    this.#transport?.assertAlive(mustNotRepeat)
    const calls = this.revision?.kind === 'legacy' ? this.#transport?.calls : undefined
    const isSent = !signal.aborted
    this.#running++
    try {
      return await calmly(onProgress, (calm) =>
        calls
          ? calls.call(params, { timeoutMs: timeouts.callMs, signal, onProgress: calm })
          : this.#callThroughSdk(params, { ...input, onProgress: calm })
      )
    } catch (error) {
      throw this.#failure(tool, error, signal, isSent)
    } finally {
      this.#ended()
    }
  }

  /** Forwards a request unchanged. */
  async request({ method, params, signal, onProgress }: RequestInput): Promise<RawResult> {
    const { timeouts } = this.#entry
    this.#transport?.assertAlive(false)
    const options = { ...timing(timeouts.callMs), allowInputRequired: true, signal }
    const isSent = !signal.aborted
    this.#running++
    try {
      return await calmly(onProgress, (calm) =>
        this.#client.request({ method, params }, rawResult, { ...options, ...(calm ? { onprogress: calm } : {}) })
      )
    } catch (error) {
      throw this.#failure(method, error, signal, isSent)
    } finally {
      this.#ended()
    }
  }

  async notify(method: string, params?: Record<string, unknown>): Promise<void> {
    await this.#client.notification(params === undefined ? { method } : { method, params })
  }

  /** Subscribes to a resource; resolves to a function that ends the subscription. */
  async subscribe(uri: string): Promise<() => Promise<void>> {
    const timeout = this.#entry.timeouts.callMs
    const failed = (error: unknown) => Promise.reject(this.#failure('the subscription', error))
    if (this.revision?.kind === 'modern') {
      const subscription = await this.#client.listen({ resourceSubscriptions: [uri] }, { timeout }).catch(failed)
      return () => subscription.close()
    }
    const send = (method: string) =>
      this.#client.request({ method, params: { uri } }, rawResult, { timeout }).catch(failed)
    await send('resources/subscribe')
    return async () => void (await send('resources/unsubscribe'))
  }

  async #callThroughSdk(
    params: { name: string; arguments: Record<string, unknown> },
    { signal, onProgress, caller }: CallInput
  ): Promise<RawResult> {
    const options = {
      ...timing(this.#entry.timeouts.callMs),
      // Without a lane, a question of the server could reach nobody.
      allowInputRequired: caller.laneId !== undefined,
      signal,
      ...(onProgress ? { onprogress: onProgress } : {})
    }
    if (this.#transport) return this.#client.request({ method: 'tools/call', params }, rawResult, options)
    // Over HTTP a tool may take parameters as headers; this call handles that.
    const definition = this.tools.find(({ name }) => name === params.name)
    const inputSchema = { ...definition?.inputSchema, type: 'object' as const }
    return {
      ...(await this.#client.callTool(params, { ...options, toolDefinition: { name: params.name, inputSchema } }))
    }
  }

  #failure(what: string, error: unknown, signal?: AbortSignal, isSent = true): AppError {
    return withoutSecrets(callFailure(this.#entry.name, what, error, signal, isSent), this.#redact)
  }

  /** Whether the server still answers at all. */
  async isResponsive(): Promise<boolean> {
    if (!this.isOpen) return false
    try {
      await this.#client.request({ method: 'tools/list', params: {} }, rawResult, { timeout: PULSE_MS })
      return true
    } catch {
      return false
    }
  }

  /** Resolves when no call or request is running. */
  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve()
    return new Promise((done) => {
      this.#onIdle = done
    })
  }

  #ended(): void {
    if (--this.#running === 0) this.#onIdle?.()
  }

  async close(): Promise<void> {
    this.#open = false
    const { transport } = this.#client
    // Otherwise a remote server would keep the session until it expires there.
    if (transport instanceof StreamableHTTPClientTransport)
      await withDeadline({ what: `"${this.#entry.name}" to end the session`, ms: END_SESSION_MS }, () =>
        transport.terminateSession()
      ).catch(() => {})
    await this.#client.close().catch(() => {})
    await this.#transport?.close()
  }
}

function timing(timeout: number) {
  return { timeout, resetTimeoutOnProgress: true, maxTotalTimeout: totalMs(timeout) }
}

function revisionOf(client: Client): KnownRevision | undefined {
  const era = client.getProtocolEra()
  if (era === 'legacy') return { kind: 'legacy' }
  const discover: DiscoverResult | undefined = client.getDiscoverResult()
  return era === 'modern' && discover ? { kind: 'modern', discover: { ...discover } } : undefined
}
