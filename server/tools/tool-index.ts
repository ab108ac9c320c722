/**
 * Which tools each server of the registry has, as last seen: the ground of listing, searching and explaining. Owns the stored
 * catalogue and keeps the router in step with it; starts no server. Invariant: what it knows of a server is of its present entry.
 */
import type { Registry } from '../catalog/registry.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import type { StoredServer, StoredTool, StoredTools } from '../catalog/stored-tools.ts'
import type { KnownRevision, ListedFacts, ToolRecords } from '../connections/tool-records.ts'
import { leftOutOf } from '../connections/wire/read-tools.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Router } from '../routing/port.ts'
import { parameterText } from './parameter-text.ts'

export interface ToolIndexOptions {
  stored: StoredTools
  router: Router
  logger: Logger
  /** Told of the tools of a server whenever they are read or listed. */
  onSeen?: ((server: string, tools: StoredTool[]) => void) | undefined
  /** Requests that a definition is known to be meant for. */
  examplesOf?: ((hash: string) => readonly string[] | undefined) | undefined
  now?: () => number
}

/** A server that has learnt the new revision goes on answering the old one: now and then it is asked again. */
const VERDICT_MS = 86_400_000
const MAX_OFFERS = 4
/** Of a description: whoever hides what a tool does behind more is not found by it, and holds up nobody with it. */
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

  /** Reads the stored catalogue. */
  async load(registry: Registry): Promise<void> {
    this.#known = await this.#options.stored.all()
    this.update(registry)
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

  /** What the router is told of it is no longer all that is known. */
  refresh(server: string): void {
    const entry = this.#entries.get(server)
    if (entry) this.#publish(entry)
  }

  /** Hears of servers whose tools are not what they were. */
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

  /** undefined: this server has never been seen. */
  tools(server: string): StoredTool[] | undefined {
    const tools = this.#tools.get(server)
    return tools && [...tools.values()]
  }

  tool(server: string, name: string): StoredTool | undefined {
    return this.#tools.get(server)?.get(name)
  }

  /** The servers that have a tool of exactly this name. */
  serversWith(tool: string): string[] {
    return [...this.#tools].filter(([, tools]) => tools.has(tool)).map(([server]) => server)
  }

  unseen(): string[] {
    return [...this.#entries.keys()].filter((server) => !this.#tools.has(server))
  }

  verdict(server: string): KnownRevision | undefined {
    const { verdict, verdictAt = 0 } = this.#fresh(server) ?? {}
    return this.#now() - verdictAt < VERDICT_MS ? verdict : undefined
  }

  record(server: string): StoredServer | undefined {
    return this.#fresh(server)
  }

  /** What it offers to clients that can do what `key` says, as far as that is known. */
  offer(server: string, key: string): StoredTool[] | undefined {
    return key === '' ? this.tools(server) : this.#fresh(server)?.offers?.[key]
  }

  /** `key` says what the client can do for whom it has been listed. */
  listed(entry: ServerEntry, tools: StoredTool[], facts: ListedFacts, key = ''): void {
    const before = this.#fresh(entry.name)
    const { verdict, startMs = before?.startMs, about = before?.about } = facts
    const sameVerdict = before?.verdict !== undefined && verdict?.kind === before.verdict.kind
    const offers = key === '' ? before?.offers : withOffer(before?.offers, key, tools)
    const record: StoredServer = {
      fingerprint: entry.fingerprint,
      ...(before?.denied ? { denied: before.denied } : {}),
      ...(key === '' ? { seenAt: this.#now(), tools } : { seenAt: before?.seenAt ?? 0, tools: before?.tools ?? [] }),
      ...(about ? { about } : {}),
      ...(offers ? { offers } : {}),
      ...(before?.verdict ? { verdict: before.verdict, verdictAt: before.verdictAt ?? 0 } : {}),
      ...(verdict && !(sameVerdict && this.verdict(entry.name)) ? { verdict, verdictAt: this.#now() } : {}),
      ...(startMs === undefined ? {} : { startMs }),
      ...(leftOutOf(tools).length > 0 ? { leftOut: leftOutOf(tools) } : {})
    }
    const old = (key === '' ? undefined : before?.offers?.[key]) ?? before?.tools
    this.#remember(entry, record)
    if (hashes(old) !== hashes(tools)) this.#tell(entry.name)
  }

  failed(entry: ServerEntry, message: string): void {
    const before = this.#fresh(entry.name) ?? { fingerprint: entry.fingerprint, seenAt: 0, tools: [] }
    const { verdict: _, verdictAt: __, ...rest } = before
    this.#remember(entry, { ...rest, lastError: { at: this.#now(), message: message.slice(0, 1000) } })
  }

  /** Its network refused it a host, so many times by now. */
  denied(entry: ServerEntry, target: string, count: number): void {
    const before = this.#fresh(entry.name) ?? { fingerprint: entry.fingerprint, seenAt: 0, tools: [] }
    const { [target]: _, ...others } = before.denied ?? {}
    const kept = Object.entries(others).slice(1 - MAX_DENIED)
    const denied = Object.fromEntries([...kept, [target, { count, at: this.#now() }]])
    this.#remember(entry, { ...before, denied })
  }

  #remember(entry: ServerEntry, record: StoredServer): void {
    this.#known.set(entry.name, record)
    // An entry that was replaced meanwhile has nothing to say about its successor.
    if (this.#entries.get(entry.name)?.fingerprint !== entry.fingerprint) return
    this.#publish(entry)
    this.#options.stored.save(entry.name, record).catch((error) => {
      this.#options.logger.warn({ server: entry.name }, `Its tools could not be stored: ${messageOf(error)}`)
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
