/**
 * The tools of each server of the registry, as last seen: the basis for listing, searching and explaining. Owns the stored index
 * and keeps the router in step with it; starts no server. Invariant: what it knows about a server belongs to the server's current
 * entry.
 */
import type { Registry } from '../catalog/registry.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import type { StoredServer, StoredTool, StoredTools } from '../catalog/stored-tools.ts'
import type { KnownRevision, ListingDetails, ToolRecords } from '../connections/tool-records.ts'
import { leftOutOf } from '../connections/wire/read-tools.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Router } from '../routing/port.ts'
import { parameterText } from './parameter-text.ts'

export interface ToolIndexOptions {
  stored: StoredTools
  router: Router
  logger: Logger
  /** Called with a server's tools whenever they are loaded or listed. */
  onSeen?: ((server: string, tools: StoredTool[]) => void) | undefined
  /** Example requests for a definition. */
  examplesOf?: ((hash: string) => readonly string[] | undefined) | undefined
  now?: () => number
}

/** Ask for the revision again after this time: a server that has been updated still answers the old one. */
const REVISION_MS = 86_400_000
const MAX_OFFERS = 4
/** Index only this much of a description; longer text would slow routing down. */
const MAX_ROUTED = 4000

const MAX_DENIED = 50

/** A tool together with the server that offers it. */
export interface KnownTool {
  server: string
  tool: StoredTool
}

export class ToolIndex implements ToolRecords {
  readonly #options: ToolIndexOptions
  readonly #entries = new Map<string, ServerEntry>()
  #known = new Map<string, StoredServer>()
  readonly #tools = new Map<string, Map<string, StoredTool>>()
  readonly #listeners = new Set<(server: string) => void>()

  constructor(options: ToolIndexOptions) {
    this.#options = options
  }

  /** Loads the stored index. */
  async load(registry: Registry): Promise<void> {
    this.#known = await this.#options.stored.all()
    this.update(registry)
  }

  /** Uses what other instances have seen since. */
  async reload(): Promise<void> {
    for (const [name, record] of await this.#options.stored.all()) {
      const entry = this.#entries.get(name)
      const known = this.#fresh(name)
      if (entry?.fingerprint !== record.fingerprint || record.seenAt <= (known?.seenAt ?? 0)) continue
      this.#known.set(name, record)
      this.#publish(entry)
      if (hashes(known?.tools) !== hashes(record.tools)) this.#tell(name)
    }
  }

  update(registry: Registry): void {
    const enabled = [...registry.servers.values()].filter((entry) => entry.enabled)
    const names = new Set(enabled.map(({ name }) => name))
    for (const name of this.#entries.keys()) {
      if (names.has(name)) continue
      this.#entries.delete(name)
      this.#tools.delete(name)
      this.#options.router.removeServer(name)
      this.#tell(name)
    }
    for (const entry of enabled) {
      const isOther = this.#entries.get(entry.name)?.fingerprint !== entry.fingerprint
      this.#entries.set(entry.name, entry)
      this.#publish(entry)
      if (isOther) this.#tell(entry.name)
    }
  }

  /** Updates the router after something that it is told about a server has changed. */
  refresh(server: string): void {
    const entry = this.#entries.get(server)
    if (entry) this.#publish(entry)
  }

  /** Calls the listener when the tools of a server have changed. */
  onChange(listener: (server: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  entry(server: string): ServerEntry | undefined {
    return this.#entries.get(server)
  }

  entries(): ServerEntry[] {
    return [...this.#entries.values()]
  }

  /** undefined if this server has never been seen. */
  tools(server: string): StoredTool[] | undefined {
    const tools = this.#tools.get(server)
    return tools && [...tools.values()]
  }

  tool(server: string, name: string): StoredTool | undefined {
    return this.#tools.get(server)?.get(name)
  }

  /** The servers that have a tool with exactly this name. */
  serversWith(tool: string): string[] {
    return [...this.#tools].filter(([, tools]) => tools.has(tool)).map(([server]) => server)
  }

  unseen(): string[] {
    return [...this.#entries.keys()].filter((server) => !this.#tools.has(server))
  }

  revision(server: string): KnownRevision | undefined {
    const { revision, revisionAt = 0 } = this.#fresh(server) ?? {}
    return this.#now() - revisionAt < REVISION_MS ? revision : undefined
  }

  record(server: string): StoredServer | undefined {
    return this.#fresh(server)
  }

  /** The tools that the server offers to clients with the capabilities in `key`, if known. */
  offer(server: string, key: string): StoredTool[] | undefined {
    return key === '' ? this.tools(server) : this.#fresh(server)?.offers?.[key]
  }

  /** `key` stands for the capabilities of the client that the tools were listed for. */
  listed(entry: ServerEntry, tools: StoredTool[], details: ListingDetails, key = ''): void {
    const before = this.#fresh(entry.name)
    const { revision, startMs = before?.startMs, about = before?.about } = details
    const sameRevision = before?.revision !== undefined && revision?.kind === before.revision.kind
    const offers = key === '' ? before?.offers : withOffer(before?.offers, key, tools)
    const record: StoredServer = {
      fingerprint: entry.fingerprint,
      ...(before?.denied ? { denied: before.denied } : {}),
      // Until it is listed for clients without capabilities, what others are offered is the best that is known.
      ...(key === '' || !before?.seenAt
        ? { seenAt: this.#now(), tools }
        : { seenAt: before.seenAt, tools: before.tools }),
      ...(about ? { about } : {}),
      ...(offers ? { offers } : {}),
      ...(before?.revision ? { revision: before.revision, revisionAt: before.revisionAt ?? 0 } : {}),
      ...(revision && !(sameRevision && this.revision(entry.name)) ? { revision, revisionAt: this.#now() } : {}),
      ...(startMs === undefined ? {} : { startMs }),
      ...(leftOutOf(tools).length > 0 ? { leftOut: leftOutOf(tools) } : {})
    }
    const old = (key === '' ? undefined : before?.offers?.[key]) ?? before?.tools
    this.#remember(entry, record)
    if (hashes(old) !== hashes(tools)) this.#tell(entry.name)
  }

  failed(entry: ServerEntry, message: string): void {
    const before = this.#fresh(entry.name) ?? { fingerprint: entry.fingerprint, seenAt: 0, tools: [] }
    const { revision: _, revisionAt: __, ...rest } = before
    this.#remember(entry, { ...rest, lastError: { at: this.#now(), message: message.slice(0, 1000) } })
  }

  /** The egress proxy has refused the server this host `count` times. */
  denied(entry: ServerEntry, target: string, count: number): void {
    const before = this.#fresh(entry.name) ?? { fingerprint: entry.fingerprint, seenAt: 0, tools: [] }
    const { [target]: _, ...others } = before.denied ?? {}
    const kept = Object.entries(others).slice(1 - MAX_DENIED)
    const denied = Object.fromEntries([...kept, [target, { count, at: this.#now() }]])
    this.#remember(entry, { ...before, denied })
  }

  #remember(entry: ServerEntry, record: StoredServer): void {
    this.#known.set(entry.name, record)
    // If the entry was replaced meanwhile, the record says nothing about the new one.
    if (this.#entries.get(entry.name)?.fingerprint !== entry.fingerprint) return
    this.#publish(entry)
    this.#options.stored.save(entry.name, record).catch((error) => {
      this.#options.logger.warn({ server: entry.name }, `Could not store its tools: ${messageOf(error)}`)
    })
  }

  #publish(entry: ServerEntry): void {
    const { router } = this.#options
    const record = this.#fresh(entry.name)
    if (record === undefined || record.seenAt === 0) {
      this.#tools.delete(entry.name)
      router.removeServer(entry.name)
      return
    }
    this.#tools.set(entry.name, new Map(record.tools.map((tool) => [tool.name, tool])))
    this.#options.onSeen?.(entry.name, record.tools)
    const routable = record.tools.map(({ name, description, inputSchema, hash }) => ({
      server: entry.name,
      name,
      description: description.slice(0, MAX_ROUTED),
      params: parameterText(inputSchema),
      examples: this.#options.examplesOf?.(hash)
    }))
    const { description, keywords, examples } = entry
    router.setServer(entry.name, routable, { description, keywords, examples })
  }

  #tell(server: string): void {
    for (const listener of this.#listeners) listener(server)
  }

  #fresh(server: string): StoredServer | undefined {
    const record = this.#known.get(server)
    return record !== undefined && record.fingerprint === this.#entries.get(server)?.fingerprint ? record : undefined
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }
}

function withOffer(offers: StoredServer['offers'], key: string, tools: StoredTool[]): StoredServer['offers'] {
  const { [key]: _, ...others } = offers ?? {}
  return Object.fromEntries([...Object.entries(others).slice(1 - MAX_OFFERS), [key, tools]])
}

function hashes(tools: StoredTool[] = []): string {
  return tools.map(({ hash }) => hash).join()
}
