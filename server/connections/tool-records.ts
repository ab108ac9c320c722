import type { ServerEntry } from '../catalog/server-entry.ts'
import type { ServerAbout, StoredServer, StoredTool } from '../catalog/stored-tools.ts'

/** The protocol revision that a server was found to speak. */
export type KnownRevision = NonNullable<StoredServer['revision']>

export interface ListingDetails {
  revision?: KnownRevision | undefined
  about?: ServerAbout
  startMs?: number
}

/** The part of the tool index that connections use: they read from it and report to it. */
export interface ToolRecords {
  entry(server: string): ServerEntry | undefined
  tools(server: string): StoredTool[] | undefined
  revision(server: string): KnownRevision | undefined
  listed(entry: ServerEntry, tools: StoredTool[], details: ListingDetails, key?: string): void
  failed(entry: ServerEntry, message: string): void
  denied(entry: ServerEntry, target: string, count: number): void
}
