/** The servers of the public MCP Registry as they were last fetched, in one file. Owns that file and the search in it; `fetch-listing.ts` fills it. */
import { randomUUID } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError, hasCode, messageOf } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import { readSmallFile } from '../../lib/files/read-small-file.ts'
import { isRecord } from '../../lib/is-record.ts'
import { parseHostileJson } from '../../lib/streams/hostile-json.ts'

export interface ListedServer {
  name: string
  version?: string
  description?: string
  /** The publisher marked it as outdated. */
  isDeprecated: boolean
  /** Its `server.json`, unchecked. */
  server: Record<string, unknown>
}

export interface Listing {
  source: string
  /** ISO time. */
  fetchedAt: string
  servers: ListedServer[]
}

export const MAX_LISTING_BYTES = 128 * 1024 * 1024
const MAX_FOUND = 20

/** Undefined if nothing was fetched yet. */
export function readListing(file: string): Listing | undefined {
  try {
    // One server a line: all of them together have more values than a hostile text may have.
    const [head = '', ...lines] = readSmallFile(file, MAX_LISTING_BYTES).trimEnd().split('\n')
    const about = parseHostileJson(Buffer.from(head))
    if (!isRecord(about)) throw new SyntaxError('it does not begin with its source')
    const servers = lines.map((line) => parseHostileJson(Buffer.from(line))).filter(isListed)
    return { source: String(about.source), fetchedAt: String(about.fetchedAt), servers }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    const message = `${file} can't be used (${messageOf(error)}): fetch it again with "mcp-orchestrator servers fetch".`
    throw new AppError('invalid', 'listing_unreadable', message, { cause: error })
  }
}

export async function writeListing(file: string, { servers, ...about }: Listing): Promise<void> {
  makeFolder(dirname(file))
  const draft = `${file}.${randomUUID()}.new`
  try {
    const lines = [about, ...servers].map((each) => `${JSON.stringify(each)}\n`)
    await writeFile(draft, lines.join(''), { mode: 0o600, flag: 'wx' })
    await rename(draft, file)
  } finally {
    await rm(draft, { force: true })
  }
}

/** The best matches first: a word in the name counts more than one in the description. All words must be there. */
export function searchListing({ servers }: Listing, query: string): { found: ListedServer[]; total: number } {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean).slice(0, MAX_FOUND)
  const scored = servers.flatMap((server) => {
    const name = server.name.toLowerCase()
    const text = `${name} ${server.description?.toLowerCase() ?? ''}`
    if (!words.every((word) => text.includes(word))) return []
    const last = name.slice(name.indexOf('/') + 1)
    const inName = words.filter((word) => last.includes(word)).length
    const exact = words.includes(last) || words.includes(name) ? 1 : 0
    return [{ server, score: exact * 100 + inName * 10 - (server.isDeprecated ? 50 : 0) - name.length / 1000 }]
  })
  const sorted = scored.toSorted((a, b) => b.score - a.score || (a.server.name < b.server.name ? -1 : 1))
  return { found: sorted.slice(0, MAX_FOUND).map(({ server }) => server), total: sorted.length }
}

function isListed(value: unknown): value is ListedServer {
  return isRecord(value) && typeof value.name === 'string' && isRecord(value.server)
}
