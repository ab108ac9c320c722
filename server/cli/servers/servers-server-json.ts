import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { EntryProblem } from '../../catalog/entry-values.ts'
import type { ClientServers } from '../../catalog/import/client-files.ts'
import { isServerName, readServerJson, type ServerJson, serverJsonIn } from '../../catalog/import/server-json.ts'
import { entryOf, type ServerJsonEntry, type WantedValue } from '../../catalog/import/server-json-entry.ts'
import { fetchListingJson, MCP_REGISTRY } from '../../catalog/listing/fetch-listing.ts'
import { secretNames } from '../../catalog/placeholders.ts'
import { readEntry } from '../../catalog/read-entry.ts'
import { valuesOf } from '../../catalog/server-entry.ts'
import { showLine } from '../../gateway/asking/show-as-data.ts'
import { AppError } from '../../lib/errors.ts'
import { readSmallFile } from '../../lib/files/read-small-file.ts'
import { didYouMean } from '../../lib/near-names.ts'
import { parseHostileJson } from '../../lib/streams/hostile-json.ts'
import { usageError } from '../usage-error.ts'
import type { ServersContext } from './servers-context.ts'
import { storedListing } from './servers-listing.ts'
import { secretsOf } from './servers-missing.ts'

const MCP_REGISTRY_CLIENT = 'MCP Registry'
const MAX_BYTES = 1024 * 1024

/** The server of a `server.json`: its file, its address, or its name in the fetched list. Undefined if it is something else. */
export async function findServerJson(context: ServersContext): Promise<ClientServers | undefined> {
  const { names, flags } = context
  const located = await locate(context)
  if (located === undefined) {
    const flag = ['as', 'set', 'remote'].find((name) => flags[name] !== undefined)
    if (flag === undefined) return undefined
    throw usageError(`--${flag} is for servers of a server.json only.`)
  }
  const source = names[0] ?? ''
  try {
    const server = readServerJson(located.server)
    const name = typeof flags.as === 'string' ? flags.as : server.name.slice(server.name.indexOf('/') + 1)
    const given = await completed(server, name, context)
    const remote = context.flags.remote === true
    const values = { given, server: name }
    const isThere = ({ raw }: ServerJsonEntry) =>
      context.registry.servers.get(name)?.fingerprint === readEntry(name, raw, 0).fingerprint
    const same = entryOf(server, values, { remote })
    const isTaken = takenSecrets(context)
    const { raw, notes } = isThere(same) ? same : entryOf(server, { ...values, isTaken }, { remote })
    const version = server.version === undefined ? '' : ` ${server.version}`
    const about = [`it is "${server.name}"${version}`, ...notes]
    const entry = readEntry(name, raw, 0)
    return { servers: [{ client: located.origin, file: source, name, raw, entry, notes: about }], problems: [] }
  } catch (error) {
    if (!(error instanceof EntryProblem)) throw error
    throw usageError(`${source} can't be imported: ${error.sentence}.`)
  }
}

interface Located {
  server: Record<string, unknown>
  /** Shown to the person: the list, address or file that it came from. */
  origin: string
}

async function locate(context: ServersContext): Promise<Located | undefined> {
  const [from] = context.names
  if (from === undefined) return undefined
  if (/^https?:\/\//i.test(from)) {
    const server = serverJsonIn(await fetchListingJson(from))
    if (server) return { server, origin: 'server.json' }
    throw usageError(`${from} is not a server.json: it needs "name", and "packages" or "remotes".`)
  }
  if (existsSync(resolve(from))) {
    const server = inFile(resolve(from))
    return server && { server, origin: 'server.json' }
  }
  if (!isServerName(from) || from.endsWith('.json')) return undefined
  const { servers, source } = storedListing(context)
  const listed = servers.find(({ name }) => name === from)
  // A list of any other address must not look like that of the public registry.
  if (listed) return { server: listed.server, origin: source === MCP_REGISTRY ? MCP_REGISTRY_CLIENT : source }
  const near = didYouMean(
    from,
    servers.map(({ name }) => name)
  )
  throw new AppError('not-found', 'listing_missing', `"${from}" is neither a file nor in the fetched list.${near}`)
}

function inFile(file: string): Record<string, unknown> | undefined {
  try {
    return serverJsonIn(parseHostileJson(Buffer.from(readSmallFile(file, MAX_BYTES))))
  } catch {
    // The reader of clients' files reports what is wrong, and where.
    return undefined
  }
}

/** The secrets that have a value, or that entries use. */
function takenSecrets(context: ServersContext): (secret: string) => boolean {
  const used = new Set([...context.registry.servers.values()].flatMap((entry) => secretNames(valuesOf(entry))))
  const known = secretsOf(context.settings.CREDENTIALS_FILE)
  return (secret) => used.has(secret) || known.secret(secret) !== undefined
}

/** All values that the user must give. Asks for what is missing, by name; without a terminal, the error names all of it. */
async function completed(server: ServerJson, name: string, { flags }: ServersContext): Promise<Map<string, string>> {
  const given = new Map(setValues(flags.set))
  const remote = flags.remote === true
  let entry = entryOf(server, { given, server: name }, { remote })
  while (entry.missing.length > 0) {
    if (!process.stdin.isTTY) {
      const lines = entry.missing.map((value) => `${describe(value)}: --set ${value.name}=VALUE`)
      throw new AppError(
        'invalid',
        'values_missing',
        `The server wants values that only you know. ${lines.join('; ')}.`
      )
    }
    for (const value of entry.missing) given.set(value.name, await ask(value))
    entry = entryOf(server, { given, server: name }, { remote })
  }
  return given
}

function describe({ name, description, choices }: WantedValue): string {
  const about = description === undefined ? '' : ` (${description.replace(/\.$/, '')})`
  return showLine(`${name}${about}${choices.length > 0 ? `, one of ${choices.join(', ')}` : ''}`)
}

async function ask(value: WantedValue): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    for (;;) {
      const answer = (await terminal.question(`${describe(value)}: `)).trim()
      if (answer !== '' && (value.choices.length === 0 || value.choices.includes(answer))) return answer
    }
  } finally {
    terminal.close()
  }
}

function setValues(given: unknown): [string, string][] {
  if (!Array.isArray(given)) return []
  return given.map((pair) => {
    const text = String(pair)
    const at = text.indexOf('=')
    // The text is not shown: it may be a secret.
    if (at < 1) throw usageError('--set needs NAME=VALUE.')
    return [text.slice(0, at), text.slice(at + 1)]
  })
}
