/**
 * The pass-through mode: a client sees the servers' own tools, resources and prompts. Owns which servers are exposed and which
 * server has what; `exposed-face.ts` serves a client. Invariant: listing tools starts no known server.
 */
import type { ClientCapabilities, ServerCapabilities } from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import { capabilityKey } from '../../connections/asking/peer.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ReportRefusal } from '../../lib/refusals.ts'
import { Discovery } from '../execute/discovery.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { ClientLane, type Standalone } from './client-lane.ts'
import { ExposedNames, type Target } from './exposed-names.ts'
import { ExposedResources } from './exposed-resources.ts'
import { HeldCalls } from './held-call.ts'
import { SharedLanes } from './shared-lanes.ts'

export interface ExposedOptions {
  /** The one exposed server, without prefixes; undefined for all. */
  only: string | undefined
  core: GatewayServices
  version: string
  logger: Logger
  refused?: ReportRefusal | undefined
}

type Has = (capabilities: ServerCapabilities) => unknown

const EVERYTHING: ServerCapabilities = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {}
}

export class Exposed {
  readonly core: GatewayServices
  readonly version: string
  readonly logger: Logger
  readonly refused: ReportRefusal | undefined
  readonly names: ExposedNames
  readonly resources: ExposedResources
  readonly held = new HeldCalls()
  readonly shared: SharedLanes
  readonly only: string | undefined
  readonly #discovery = new Discovery()
  /** Never seen, and somebody has waited for them already. */
  #waitedFor = new Set<string>()

  constructor({ only, core, version, logger, refused }: ExposedOptions) {
    this.core = core
    this.version = version
    this.logger = logger
    this.refused = refused
    this.only = only
    this.names = new ExposedNames(only)
    this.resources = new ExposedResources(only)
    const { connections } = core
    this.shared = new SharedLanes(
      (caller, standalone) =>
        new ClientLane({ connections, caller, capabilities: {}, standalone, isShared: true, logger })
    )
  }

  shows(server: string): boolean {
    return this.only === undefined || this.only === server
  }

  servers(): string[] {
    return this.core.index.entries().flatMap(({ name }) => (this.shows(name) ? [name] : []))
  }

  /** Servers that have it, or may have it because they were never seen. */
  serversWith(has: Has): string[] {
    return this.servers().filter((server) => {
      const about = this.core.index.record(server)?.about
      return about === undefined || has(about.capabilities)
    })
  }

  /** The capabilities of all exposed servers. A server that was never seen may have any. */
  capabilities(): ServerCapabilities {
    const known = this.servers().map((server) => this.core.index.record(server)?.about?.capabilities)
    if (known.length === 0 || known.includes(undefined)) return EVERYTHING
    const any = (has: Has) => known.some((capabilities) => has(capabilities ?? {}))
    return {
      tools: { listChanged: true },
      ...(any(({ resources }) => resources)
        ? { resources: { subscribe: any(({ resources }) => resources?.subscribe), listChanged: true } }
        : {}),
      ...(any(({ prompts }) => prompts) ? { prompts: { listChanged: true } } : {}),
      ...(any(({ completions }) => completions) ? { completions: {} } : {}),
      ...(any(({ logging }) => logging) ? { logging: {} } : {})
    }
  }

  instructions(): string | undefined {
    return this.only === undefined ? undefined : this.core.index.record(this.only)?.about?.instructions
  }

  /**
   * Lists servers that were never seen, and waits for them only briefly, and only once: a client that greets us and then lists tools
   * must not wait twice. It hears of what is listed later.
   */
  async discoverServers(caller: Caller, signal: AbortSignal): Promise<void> {
    const unknown = this.servers().filter((server) => this.core.index.record(server)?.about === undefined)
    if (unknown.length === 0) this.#waitedFor.clear()
    if (unknown.length === 0) return
    try {
      if (this.only !== undefined) await this.core.connections.list(this.only, { caller, signal })
      else {
        const waitMs = unknown.every((server) => this.#waitedFor.has(server)) ? 0 : undefined
        await this.#discovery.discover(this.core, { caller, signal }, waitMs)
        if (!signal.aborted) this.#waitedFor = new Set(unknown)
      }
    } catch (error) {
      this.logger.warn(`Could not list a server: ${messageOf(error)}`)
    }
  }

  /** With a single server it is worth starting it to learn what it offers to this kind of client. */
  async discoverFor(lane: ClientLane, signal: AbortSignal): Promise<void> {
    if (this.only === undefined || this.isModern(this.only)) return
    const { index, connections } = this.core
    if (index.offer(this.only, capabilityKey(lane.capabilities)) !== undefined) return
    await connections.list(this.only, { caller: lane.caller, signal }).catch((error) => {
      this.logger.warn(`Could not list a server: ${messageOf(error)}`)
    })
  }

  /** The server that has listed it; undefined if nobody has. */
  resourceTarget(uri: string): Target | undefined {
    const target = this.resources.target(uri)
    return target !== undefined && this.servers().includes(target.server) ? target : undefined
  }

  openLane(caller: Caller, capabilities: ClientCapabilities, standalone: Standalone): ClientLane {
    const { logger } = this
    return new ClientLane({ connections: this.core.connections, caller, capabilities, standalone, logger })
  }

  isModern(server: string): boolean {
    return this.core.index.revision(server)?.kind === 'modern'
  }

  /** The tools as last seen. What a server offers only to this kind of client is known once it was listed for one. */
  tools(server: string, capabilities: ClientCapabilities): StoredTool[] {
    const { index } = this.core
    return index.offer(server, capabilityKey(capabilities)) ?? index.tools(server) ?? []
  }

  /** Finds the tool of this name as the servers last listed it for this client. */
  finderOf(tool: string, { capabilities }: ClientLane): (server: string) => StoredTool | undefined {
    return (server) => this.tools(server, capabilities).find(({ name }) => name === tool)
  }

  async tool(
    exposed: string,
    lane: ClientLane,
    signal: AbortSignal
  ): Promise<{ server: string; tool: StoredTool } | undefined> {
    const target = this.target(exposed, (server) => this.tools(server, lane.capabilities))
    if (target === undefined) return undefined
    const find = (tools: StoredTool[]) => tools.find(({ name }) => name === target.name)
    const known = find(this.tools(target.server, lane.capabilities))
    const tool = known ?? find(await this.core.connections.list(target.server, { caller: lane.caller, signal }))
    return tool && { server: target.server, tool }
  }

  /** A hashed name from another process is known only after it was computed here again. */
  target(exposed: string, listed: (server: string) => { name: string }[] = () => []): Target | undefined {
    const isThere = (target: Target | undefined) => target !== undefined && this.servers().includes(target.server)
    const target = this.names.target(exposed)
    if (isThere(target)) return target
    for (const server of this.servers()) for (const { name } of listed(server)) this.names.of(server, name)
    const again = this.names.target(exposed)
    return isThere(again) ? again : undefined
  }

  close(): void {
    this.held.close()
  }
}
