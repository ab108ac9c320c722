import { dataPaths } from '../../app/data-paths.ts'
import { fetchListing, MCP_REGISTRY } from '../../catalog/listing/fetch-listing.ts'
import { type Listing, readListing, searchListing, writeListing } from '../../catalog/listing/listing.ts'
import { showLine } from '../../gateway/asking/show-as-data.ts'
import { AppError } from '../../lib/errors.ts'
import { plural } from '../../lib/plural.ts'
import { usageError } from '../usage-error.ts'
import { print, type ServersContext } from './servers-context.ts'

/** Fetches the list of a registry; `search` and `import` then need no network. */
export async function fetchServers(context: ServersContext): Promise<number> {
  const [address = MCP_REGISTRY] = context.names
  const file = dataPaths(context.settings.DATA_DIR).listing
  const isShown = process.stderr.isTTY && !context.json
  const { leftOut, ...listing } = await fetchListing(address, (servers) => {
    if (isShown) process.stderr.write(`\r${servers} servers`)
  })
  if (isShown) process.stderr.write('\n')
  await writeListing(file, listing)
  const { source, servers } = listing
  print(context, { source, servers: servers.length, leftOut, file }, [
    `Fetched ${plural(servers.length, 'server')} from ${showLine(source)}.`,
    ...(leftOut > 0 ? [`Left out, because they can't be read: ${leftOut}.`] : []),
    'Search them with: mcp-orchestrator servers search WORD …'
  ])
  return 0
}

export async function searchServers(context: ServersContext): Promise<number> {
  const listing = storedListing(context)
  const query = context.names.join(' ')
  if (query.trim() === '') throw usageError('Give words to search for: servers search WORD …')
  const { found, total } = searchListing(listing, query)
  const { source, fetchedAt } = listing
  const rows = found.map(({ name, version, description, isDeprecated }) => ({
    name,
    version,
    description,
    isDeprecated
  }))
  const lines = rows.flatMap(({ name, version = '', description = '', isDeprecated }) => [
    showLine(`${name} ${version}${isDeprecated ? ' (deprecated)' : ''}`),
    ...(description === '' ? [] : [`    ${showLine(description)}`])
  ])
  const more = total > found.length ? [`${total - found.length} more: search for more words.`] : []
  const how = found[0]
    ? [`Import one with, for example: mcp-orchestrator servers import ${showLine(found[0].name)}`]
    : []
  const none = `No server has all of these words. ${plural(listing.servers.length, 'server')} of ${source}, fetched ${fetchedAt}.`
  print(context, { source, fetchedAt, total, servers: rows }, found.length > 0 ? [...lines, ...more, ...how] : [none])
  return found.length > 0 ? 0 : 1
}

export function storedListing({ settings }: ServersContext): Listing {
  const listing = readListing(dataPaths(settings.DATA_DIR).listing)
  if (listing) return listing
  const message = 'No list of servers was fetched yet. Run: mcp-orchestrator servers fetch'
  throw new AppError('not-found', 'listing_missing', message)
}
