/**
 * Turns a client's `mcpServers`, pasted text or an object, into a plan of what would be added. Uses the same strict reader as the
 * registry. Writes nothing and starts nothing. What it returns for display contains no values that look like secrets.
 */
import type { PlannedServer } from '../../../contract/servers/servers.ts'
import { isRecord } from '../../lib/is-record.ts'
import { alikeName } from '../../lib/near-names.ts'
import { showTarget } from '../describe-target.ts'
import { EntryProblem } from '../entry-values.ts'
import { type LocatedJson, parseJsonWithLines } from '../json-with-lines.ts'
import { isSecretWord, looksSecret, secretsInUrl } from '../literal-secrets.ts'
import { type RegistryProblem, readRegistry } from '../registry.ts'
import { type ServerEntry, valuesOf } from '../server-entry.ts'
import { LOADERS } from '../shown-value.ts'
import { serverLists } from './server-lists.ts'
import { isThisGateway } from './this-gateway.ts'
import { translateEntry } from './translate-entry.ts'

export interface ServersPlan {
  servers: PlannedServer[]
  /** As they will be written to the file. */
  raw: Record<string, Record<string, unknown>>
  problems: RegistryProblem[]
}

const PASTED = 'The pasted text'

/** Throws an error with the line if the text as a whole can't be read. Names that are taken are reported, not replaced. */
export function planServers(text: string, taken: (name: string) => boolean): ServersPlan {
  const source = wrapped(text)
  const located = parsed(source)
  const plan: Pick<ServersPlan, 'servers' | 'problems'> = { servers: [], problems: [] }
  const raws = new Map<string, Record<string, unknown>>()
  const [found] = serverLists(located.value, PASTED, undefined)
  for (const [server, theirs] of Object.entries(found?.list ?? {})) {
    const lineOf = (path: string[]) => located.lineOf([...(found?.path ?? []), server, ...path])
    const report = (reason: string, fatal: boolean, path: string[] = []) =>
      plan.problems.push({ server, line: lineOf(path), reason, fatal })
    try {
      if (taken(server) || alikeName(raws.keys(), server) !== undefined)
        throw new EntryProblem([], 'there is a server of this name already; remove it first')
      // A person who pastes an entry must not read files, folders or variables of this machine.
      const { raw, entry, notes } = translateEntry(server, theirs, lineOf([]), {})
      for (const note of notes) report(note, false, fieldOf(note))
      raws.set(server, raw)
      plan.servers.push({ ...showTarget(entry), warnings: warnings(entry) })
    } catch (error) {
      if (!(error instanceof EntryProblem)) throw error
      report(error.sentence, true, error.path)
    }
  }
  return { ...plan, raw: Object.fromEntries(raws) }
}

/** The field that a note is about, to find its line. */
function fieldOf(note: string): string[] {
  return /^"([^"]+)"/.exec(note)?.slice(1) ?? []
}

function parsed(source: string): LocatedJson {
  const value = tryParse(source)
  // The registry's reader reports what is wrong with the text as a whole, and where.
  if (!isRecord(value) || !isRecord(value.context_servers)) readRegistry(source, PASTED)
  return parseJsonWithLines(source)
}

/** The docs of some clients show only the inner object. Line numbers stay the same. */
function wrapped(text: string): string {
  const value = tryParse(text)
  if (!isRecord(value) || [value.mcpServers, value.servers, value.context_servers].some(isRecord)) return text
  const looksInner = Object.values(value).some(
    (item) => isRecord(item) && ('command' in item || 'url' in item || 'httpUrl' in item)
  )
  return looksInner ? `{"mcpServers":${text}}` : text
}

function tryParse(text: string): unknown {
  try {
    return parseJsonWithLines(text).value
  } catch {
    // The reader reports what is wrong, and where.
    return undefined
  }
}

/** Risks that a person should check before they confirm. */
export function warnings(entry: ServerEntry): string[] {
  const found: string[] = []
  const values = valuesOf(entry)
  const secret = Object.keys(values).filter((name) => looksSecret(name, values[name] ?? ''))
  if (secret.length > 0)
    found.push(
      `${secret.join(', ')}: looks like a secret, and is written into mcp.json as plain text: better put it into the credentials file and write \${secret:NAME} here.`
    )
  const allowed = Object.entries(entry.approval).filter(([, verdict]) => verdict === 'allow')
  if (allowed.length > 0) found.push(`Runs without asking you: ${allowed.map(([glob]) => glob).join(', ')}.`)
  if (entry.readOnly.length > 0)
    found.push(`Tools that a sentence alone runs, because this entry calls them readers: ${entry.readOnly.join(', ')}.`)
  if (isThisGateway(entry)) found.push('This is the gateway itself: it would become a server of its own.')
  if (entry.kind === 'local') {
    const loaders = Object.keys(entry.env).filter((name) => LOADERS.test(name))
    if (loaders.length > 0)
      found.push(
        `${loaders.join(', ')} can make the command run something else, or send its data elsewhere: check the value.`
      )
    if (entry.args.some(isSecretWord))
      found.push('The command line seems to hold a secret, which everyone on this machine can read: use a variable.')
  } else if (secretsInUrl(entry.url).length > 0) {
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
