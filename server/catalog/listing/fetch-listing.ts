/** Fetches from the public MCP Registry, or another one with the same API. What it answers is hostile, so everything has a limit. */
import { AppError, messageOf } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { parseHostileJson } from '../../lib/streams/hostile-json.ts'
import { readBounded } from '../../lib/streams/read-bounded.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import { EntryProblem } from '../entry-values.ts'
import { readServerJson, serverJsonIn } from '../import/server-json.ts'
import { type ListedServer, type Listing, MAX_LISTING_BYTES } from './listing.ts'

export const MCP_REGISTRY = 'https://registry.modelcontextprotocol.io'

const PAGE_MS = 20_000
const PAGE_ITEMS = 100
const MAX_PAGES = 2000
const MAX_PAGE_BYTES = 16 * 1024 * 1024
const MAX_SERVER_CHARS = 64 * 1024
const OFFICIAL = 'io.modelcontextprotocol.registry/official'

export interface FetchedListing extends Listing {
  /** Servers that can't be used. */
  leftOut: number
}

/** All servers in their latest version. `onPage` is called after each page. */
export async function fetchListing(address: string, onPage: (servers: number) => void): Promise<FetchedListing> {
  const source = usableAddress(address).replace(/\/+$/, '')
  const servers = new Map<string, ListedServer>()
  const cursors = new Set<string>()
  let [leftOut, chars] = [0, 0]
  for (let cursor = ''; ; ) {
    const page = await fetchPage(source, cursor)
    for (const item of page.servers) {
      const listed = readItem(item)
      if (listed === 'old') continue
      if (listed === undefined) leftOut++
      else {
        servers.set(listed.name, listed)
        chars += JSON.stringify(listed).length
      }
    }
    onPage(servers.size)
    if (page.next === undefined)
      return { source, fetchedAt: new Date().toISOString(), servers: [...servers.values()], leftOut }
    if (cursors.has(page.next) || cursors.size >= MAX_PAGES || chars * 4 > MAX_LISTING_BYTES * 2)
      throw failed(source, 'its list does not end')
    cursors.add(page.next)
    cursor = page.next
  }
}

/** One JSON document of any address: a `server.json`, or a server as a registry answers it. */
export async function fetchListingJson(address: string, maxBytes = MAX_SERVER_CHARS * 4): Promise<unknown> {
  const url = usableAddress(address)
  const deadline = { what: `an answer from ${url}`, ms: PAGE_MS, code: 'listing_unreachable' }
  return withDeadline(deadline, async (signal) => {
    const response = await fetch(url, { signal, redirect: 'error', headers: { accept: 'application/json' } }).catch(
      (error) => {
        throw failed(url, messageOf(error.cause ?? error))
      }
    )
    if (!response.ok) throw failed(url, `it answers with status ${response.status}`)
    const body = await readBounded(response.body, maxBytes)
    if (!body) throw failed(url, `its answer is larger than ${maxBytes} bytes`)
    try {
      return parseHostileJson(body)
    } catch (error) {
      throw failed(url, `its answer is not JSON: ${messageOf(error)}`)
    }
  })
}

async function fetchPage(source: string, cursor: string): Promise<{ servers: unknown[]; next?: string }> {
  const query = new URLSearchParams({ version: 'latest', limit: String(PAGE_ITEMS), ...(cursor && { cursor }) })
  const answer = await fetchListingJson(`${source}/v0.1/servers?${query}`, MAX_PAGE_BYTES)
  if (!isRecord(answer) || !Array.isArray(answer.servers)) throw failed(source, 'it does not list servers')
  const next = isRecord(answer.metadata) ? answer.metadata.nextCursor : undefined
  const isMore = typeof next === 'string' && next !== '' && next.length <= 2000
  return { servers: answer.servers, ...(isMore ? { next } : {}) }
}

function readItem(item: unknown): ListedServer | 'old' | undefined {
  const raw = serverJsonIn(item)
  if (raw === undefined || JSON.stringify(raw).length > MAX_SERVER_CHARS) return undefined
  const meta = isRecord(item) && isRecord(item._meta) ? item._meta[OFFICIAL] : undefined
  const { status, isLatest } = isRecord(meta) ? meta : {}
  if (status === 'deleted' || isLatest === false) return 'old'
  try {
    const { name, version, description } = readServerJson(raw)
    const about = {
      ...(version === undefined ? {} : { version }),
      ...(description === undefined ? {} : { description })
    }
    return { name, ...about, isDeprecated: status === 'deprecated', server: raw }
  } catch (error) {
    if (error instanceof EntryProblem) return undefined
    throw error
  }
}

/** Without encryption, anyone on the way could replace what will run here. */
function usableAddress(address: string): string {
  const { protocol, hostname, href } = URL.parse(address) ?? {}
  const isHere = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  if (href !== undefined && (protocol === 'https:' || (protocol === 'http:' && isHere))) return href
  throw new AppError('invalid', 'usage', 'The address must begin with https:// (http:// only on this machine).')
}

function failed(address: string, reason: string): AppError {
  return new AppError('unavailable', 'listing_unreachable', `Can't read servers from ${address}: ${reason}.`)
}
