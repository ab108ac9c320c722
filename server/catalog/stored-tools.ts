/**
 * The tools last seen on each server, so that listing, searching and explaining start no child. Written whenever a server's tools
 * are listed. A record with another fingerprint belongs to another server and does not count.
 */
import { createHash } from 'node:crypto'
import { isRecord } from '../lib/is-record.ts'

export interface StoredTool {
  name: string
  description: string
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
  annotations?: Record<string, unknown>
  /** Other fields for clients: title, icons, `_meta`. */
  shown?: Record<string, unknown>
  /** Covers all fields above. */
  hash: string
}

/** The server's description of itself in `initialize`. */
export interface ServerAbout {
  capabilities: Record<string, unknown>
  instructions?: string
}

export interface StoredServer {
  fingerprint: string
  /** When the tools were last listed; 0 if never. */
  seenAt: number
  tools: StoredTool[]
  about?: ServerAbout
  /** Its tools for clients with more capabilities, by capabilities; only the latest few. */
  offers?: Record<string, StoredTool[]>
  /** The revision that it speaks, as detected at `revisionAt`. */
  revision?: { kind: 'legacy' } | { kind: 'modern'; discover: Record<string, unknown> }
  revisionAt?: number
  startMs?: number
  lastError?: { at: number; message: string }
  /** Hosts that the egress proxy refused, by host and port. */
  denied?: Record<string, { count: number; at: number }>
  /** Tools that it listed but that can't be offered, each with the reason. */
  leftOut?: string[]
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** The part of the key-value store that is needed here. */
export interface CatalogStore {
  set(space: string, key: string, value: Json): Promise<void>
  remove(space: string, key: string): Promise<void>
  list(space: string): Promise<{ key: string; value: Json }[]>
}

const SPACE = 'catalog-servers'

export class StoredTools {
  readonly #keyValues: CatalogStore

  constructor(keyValues: CatalogStore) {
    this.#keyValues = keyValues
  }

  async all(): Promise<Map<string, StoredServer>> {
    const rows = await this.#keyValues.list(SPACE)
    return new Map(
      rows.flatMap(({ key, value }) => {
        const server = readStored(value)
        return server ? [[key, server] as const] : []
      })
    )
  }

  async save(name: string, server: StoredServer): Promise<void> {
    await this.#keyValues.set(SPACE, name, toJson(server))
  }

  async remove(name: string): Promise<void> {
    await this.#keyValues.remove(SPACE, name)
  }
}

export function toolHash(tool: Omit<StoredTool, 'hash'>): string {
  const { name, description, inputSchema, annotations, outputSchema, shown } = tool
  return createHash('sha256')
    .update(JSON.stringify([name, description, inputSchema, annotations ?? null, outputSchema, shown]))
    .digest('hex')
}

/** Another version of this program may have hashed other fields. */
function withHash(tool: StoredTool): StoredTool {
  return { ...tool, hash: toolHash(tool) }
}

/** Stored values were written by this program, perhaps by another version of it. */
function readStored(value: unknown): StoredServer | undefined {
  if (!isRecord(value) || typeof value.fingerprint !== 'string' || !Array.isArray(value.tools)) return undefined
  if (typeof value.seenAt !== 'number' || !value.tools.every(isStoredTool)) return undefined
  return {
    fingerprint: value.fingerprint,
    seenAt: value.seenAt,
    tools: value.tools.map(withHash),
    ...readRevision(value),
    ...readAbout(value.about),
    ...readOffers(value.offers),
    ...(typeof value.startMs === 'number' ? { startMs: value.startMs } : {}),
    ...readLastError(value.lastError),
    ...readDenied(value.denied),
    ...readLeftOut(value.leftOut)
  }
}

function readRevision({
  revision,
  revisionAt
}: Record<string, unknown>): Pick<StoredServer, 'revision' | 'revisionAt'> {
  if (!isRecord(revision) || typeof revisionAt !== 'number') return {}
  if (revision.kind === 'legacy') return { revision: { kind: 'legacy' }, revisionAt }
  const { discover } = revision
  return revision.kind === 'modern' && isRecord(discover) ? { revision: { kind: 'modern', discover }, revisionAt } : {}
}

function readAbout(value: unknown): Pick<StoredServer, 'about'> {
  if (!isRecord(value) || !isRecord(value.capabilities)) return {}
  const { capabilities, instructions } = value
  return { about: { capabilities, ...(typeof instructions === 'string' ? { instructions } : {}) } }
}

function readOffers(value: unknown): Pick<StoredServer, 'offers'> {
  if (!isRecord(value)) return {}
  const offers: Record<string, StoredTool[]> = {}
  for (const [key, tools] of Object.entries(value)) {
    if (Array.isArray(tools) && tools.every(isStoredTool)) offers[key] = tools.map(withHash)
  }
  return { offers }
}

function readDenied(value: unknown): Pick<StoredServer, 'denied'> {
  if (!isRecord(value)) return {}
  const denied = Object.entries(value).flatMap(([target, told]) => {
    const { count, at } = isRecord(told) ? told : {}
    return typeof count === 'number' && typeof at === 'number' ? [[target, { count, at }] as const] : []
  })
  return { denied: Object.fromEntries(denied) }
}

function readLeftOut(value: unknown): Pick<StoredServer, 'leftOut'> {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? { leftOut: value } : {}
}

function readLastError(value: unknown): Pick<StoredServer, 'lastError'> {
  if (!isRecord(value) || typeof value.at !== 'number' || typeof value.message !== 'string') return {}
  return { lastError: { at: value.at, message: value.message } }
}

function isStoredTool(value: unknown): value is StoredTool {
  return (
    isRecord(value) &&
    typeof value.name === 'string' &&
    typeof value.description === 'string' &&
    typeof value.hash === 'string' &&
    isRecord(value.inputSchema)
  )
}

function toJson(server: StoredServer): Json {
  return JSON.parse(JSON.stringify(server))
}
