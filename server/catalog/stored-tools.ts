/**
 * The tools last seen on each server, so that listing, searching and explaining start no child. Written whenever a server's tools
 * are listed. A record with another fingerprint belongs to another server and does not count.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { isRecord } from '../lib/is-record.ts'

const record = z.custom<Record<string, unknown>>(isRecord)

const storedTool = z.object({
  name: z.string(),
  description: z.string(),
  inputSchema: record,
  outputSchema: record.exactOptional(),
  annotations: record.exactOptional(),
  /** Other fields for clients: title, icons, `_meta`. */
  shown: record.exactOptional(),
  /** Covers all fields above. */
  hash: z.string()
})
export type StoredTool = z.infer<typeof storedTool>

/** The server's description of itself in `initialize`. */
const serverAbout = z.object({ capabilities: record, instructions: z.string().exactOptional() })
export type ServerAbout = z.infer<typeof serverAbout>

// Another version of this program may have hashed other fields.
const storedTools = z.array(storedTool.transform((tool) => ({ ...tool, hash: toolHash(tool) })))

const storedServer = z.object({
  fingerprint: z.string(),
  /** When the tools were last listed; 0 if never. */
  seenAt: z.number(),
  tools: storedTools,
  about: serverAbout.exactOptional(),
  /** Its tools for clients with more capabilities, by capabilities; only the latest few. */
  offers: z.record(z.string(), storedTools).exactOptional(),
  /** The revision that it speaks, as detected at `revisionAt`. */
  revision: z
    .union([z.object({ kind: z.literal('legacy') }), z.object({ kind: z.literal('modern'), discover: record })])
    .exactOptional(),
  revisionAt: z.number().exactOptional(),
  startMs: z.number().exactOptional(),
  lastError: z.object({ at: z.number(), message: z.string() }).exactOptional(),
  /** Hosts that the egress proxy refused, by host and port. */
  denied: z.record(z.string(), z.object({ count: z.number(), at: z.number() })).exactOptional(),
  /** Tools that it listed but that can't be offered, each with the reason. */
  leftOut: z.array(z.string()).exactOptional()
})
export type StoredServer = z.infer<typeof storedServer>

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

  /** A row that can't be read counts as missing: the server is then listed again. */
  async all(): Promise<Map<string, StoredServer>> {
    const rows = await this.#keyValues.list(SPACE)
    return new Map(
      rows.flatMap(({ key, value }) => {
        const { data } = storedServer.safeParse(value)
        return data ? [[key, data] as const] : []
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

function toJson(server: StoredServer): Json {
  return JSON.parse(JSON.stringify(server))
}
