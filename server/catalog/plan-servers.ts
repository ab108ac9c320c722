/**
 * From a client's `mcpServers`, as pasted or as an object, to what would be added: read by the same strict reader as the registry
 * itself. Writes nothing and starts nothing; what it returns to be shown has no value of a variable in it.
 */
import type { PlannedServer } from '../../contract/servers.ts'
import { isRecord } from '../lib/is-record.ts'
import { isThisGateway } from './client-files.ts'
import { looksSecret, showTarget } from './describe-target.ts'
import { describeForeign } from './foreign-placeholders.ts'
import { parseJsonWithLines } from './json-with-lines.ts'
import { readEntry } from './read-entry.ts'
import { type RegistryProblem, readRegistry } from './registry.ts'
import type { ServerEntry } from './server-entry.ts'
import { translatePlaceholders } from './translate-placeholders.ts'

export interface ServersPlan {
  servers: PlannedServer[]
  /** As they will stand in the file. */
  raw: Record<string, Record<string, unknown>>
  problems: RegistryProblem[]
}

const PASTED = 'what was pasted'

/** Throws, with the line, when the text as a whole can't be read. Names that are taken are reported, not replaced. */
export function planServers(text: string, taken: (name: string) => boolean): ServersPlan {
  const source = wrapped(text)
  const registry = readRegistry(source, PASTED)
  const listed = listOf(parseJsonWithLines(source).value)
  const plan: Pick<ServersPlan, 'servers' | 'problems'> = { servers: [], problems: [...registry.problems] }
  const raws: [string, Record<string, unknown>][] = []
  for (const entry of registry.servers.values()) {
    const { raw, left } = translatePlaceholders(listed[entry.name])
    if (taken(entry.name)) {
      const reason = 'there is a server of this name already; remove it first'
      plan.problems.push({ server: entry.name, line: entry.line, reason, fatal: true })
    } else if (left.length > 0) {
      plan.problems.push({ server: entry.name, line: entry.line, reason: describeForeign(left), fatal: true })
    } else if (isRecord(raw)) {
      const translated = readEntry(entry.name, raw, entry.line)
      raws.push([entry.name, raw])
      plan.servers.push({ ...showTarget(translated), warnings: warnings(translated) })
    }
  }
  return { ...plan, raw: Object.fromEntries(raws) }
}

/** Some clients' documentation shows the inner object alone. The lines stay as they are. */
function wrapped(text: string): string {
  const value = tryParse(text)
  if (!isRecord(value) || isRecord(value.mcpServers) || isRecord(value.servers)) return text
  const looksInner = Object.values(value).some((item) => isRecord(item) && ('command' in item || 'url' in item))
  return looksInner ? `{"mcpServers":${text}}` : text
}

function tryParse(text: string): unknown {
  try {
    return parseJsonWithLines(text).value
  } catch {
    // The reader says what is wrong, and where.
    return undefined
  }
}

function listOf(value: unknown): Record<string, unknown> {
  const listed = isRecord(value) ? (value.mcpServers ?? value.servers) : undefined
  return isRecord(listed) ? listed : {}
}

/** They decide what a command loads before its own first line. */
const LOADERS =
  /^(NODE_OPTIONS|NODE_PATH|LD_.*|DYLD_.*|PYTHON(PATH|STARTUP|HOME)|PERL5(OPT|LIB)|RUBYOPT|BASH_ENV|PATH)$/i

/** What a person should look at twice before they say yes. */
export function warnings(entry: ServerEntry): string[] {
  const found: string[] = []
  const values = entry.kind === 'local' ? entry.env : entry.headers
  const secret = Object.keys(values).filter((name) => looksSecret(name, values[name] ?? ''))
  if (secret.length > 0)
    found.push(
      `${secret.join(', ')}: looks like a secret, and is written into mcp.json as plain text: better put it into the credentials file and write \${secret:NAME} here.`
    )
  const allowed = Object.entries(entry.approval).filter(([, verdict]) => verdict === 'allow')
  if (allowed.length > 0) found.push(`Runs without asking you: ${allowed.map(([glob]) => glob).join(', ')}.`)
  if (isThisGateway(entry)) found.push('This is the gateway itself: it would become a server of its own.')
  if (entry.kind === 'local') {
    const loaders = Object.keys(entry.env).filter((name) => LOADERS.test(name))
    if (loaders.length > 0)
      found.push(`${loaders.join(', ')} can make the command run something else: check its value.`)
    if (entry.args.some(isSecretWord))
      found.push('The command line seems to hold a secret, which everyone on this machine can read: use a variable.')
  } else if (hasSecretInUrl(entry.url)) {
    found.push('The address seems to hold a secret, which logs on the way can keep: use a header.')
  }
  if (
    entry.kind === 'remote' &&
    entry.url.startsWith('http:') &&
    !/^http:\/\/(localhost|127\.|\[::1\])/.test(entry.url)
  ) {
    found.push('What is sent to it is not encrypted.')
  }
  return found
}

/** User and password, `?api_key=…`, a long random part of the path, as some providers have it. */
function hasSecretInUrl(address: string): boolean {
  const { username, password, searchParams, pathname, hash } = new URL(address)
  const inQuery = [...searchParams, ...new URLSearchParams(hash.slice(1))].some(
    ([name, value]) => looksSecret(name, value) || isRandom(value)
  )
  return (
    username !== '' ||
    password !== '' ||
    inQuery ||
    pathname.split('/').some((part) => looksSecret('', part) || isRandom(part))
  )
}

/** 24 characters or more with letters and digits mixed: no word. A UUID names things rather than proving anything. */
function isRandom(part: string): boolean {
  return (
    /^[\w.~-]{24,}$/.test(part) &&
    /\d/.test(part) &&
    /[A-Za-z]/.test(part) &&
    !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-/.test(part)
  )
}

/** `--token abc`, `--token=abc`, or a value that is known by its beginning. */
function isSecretWord(word: string, at: number, words: string[]): boolean {
  const before = words[at - 1] ?? ''
  const [name = '', value = ''] = word.split('=', 2)
  return looksSecret(before.startsWith('-') ? before : '', word) || (value !== '' && looksSecret(name, value))
}
