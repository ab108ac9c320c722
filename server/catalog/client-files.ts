import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import { EntryProblem } from './entry-values.ts'
import { describeForeign } from './foreign-placeholders.ts'
import { JsonSyntaxError, type LocatedJson, parseJsonWithLines } from './json-with-lines.ts'
import { readEntry } from './read-entry.ts'
import { describeProblem } from './registry.ts'
import type { ServerEntry } from './server-entry.ts'
import { translatePlaceholders } from './translate-placeholders.ts'

export interface FoundServer {
  client: string
  file: string
  name: string
  raw: Record<string, unknown>
  entry: ServerEntry
}

export interface ClientServers {
  servers: FoundServer[]
  /** What can't be taken over, and why; a sentence each. */
  problems: string[]
}

/** Where other clients keep their servers, under the user's home and the folder that we are in. */
const FILES: [client: string, path: string[]][] = [
  ['Claude Desktop', ['.config/Claude/claude_desktop_config.json']],
  ['Claude Desktop', ['Library/Application Support/Claude/claude_desktop_config.json']],
  ['Claude Code', ['.claude.json']],
  ['Cursor', ['.cursor/mcp.json']],
  ['VS Code', ['.config/Code/User/mcp.json']],
  ['VS Code', ['Library/Application Support/Code/User/mcp.json']],
  ['Windsurf', ['.codeium/windsurf/mcp_config.json']]
]
const LOCAL: [client: string, path: string][] = [
  ['Claude Code', '.mcp.json'],
  ['Cursor', '.cursor/mcp.json'],
  ['VS Code', '.vscode/mcp.json']
]

/** The servers in the files of Claude Desktop, Claude Code, Cursor, VS Code and Windsurf. What can't be read hides no other. */
export async function findClientServers(home: string, folder: string): Promise<ClientServers> {
  const files = [
    ...FILES.map(([client, [path = '']]) => ({ client, file: join(home, path) })),
    ...LOCAL.map(([client, path]) => ({ client, file: join(folder, path) }))
  ]
  const found = await Promise.all(
    files.map(({ client, file }) =>
      readClientFile(client, file, folder).catch((error): ClientServers => {
        const isSilent = isAppError(error) && error.details.silent === true
        return { servers: [], problems: isSilent ? [] : [messageOf(error)] }
      })
    )
  )
  return { servers: found.flatMap(({ servers }) => servers), problems: found.flatMap(({ problems }) => problems) }
}

/** Throws when the file as a whole can't be used. `folder`: where a client has servers for one folder alone, for that one. */
export async function readClientFile(client: string, file: string, folder?: string): Promise<ClientServers> {
  const located = await locate(file)
  const { value } = located
  const lists = isRecord(value) ? [['mcpServers'], ['servers'], ['projects', folder ?? '', 'mcpServers']] : []
  const listed = lists.flatMap((path) => {
    const list = path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value)
    return isRecord(list) ? [{ path, list }] : []
  })
  if (listed.length === 0) throw unusable(`${file} has no servers: it needs an object "mcpServers".`, true)
  const result: ClientServers = { servers: [], problems: [] }
  for (const { path, list } of listed) {
    for (const [name, theirs] of Object.entries(list)) {
      const { raw, left } = translatePlaceholders(theirs)
      const lineOf = (inner: string[]) => located.lineOf([...path, name, ...inner])
      try {
        const entry = readEntry(name, raw, 0)
        if (isThisGateway(entry))
          result.problems.push(`${file}: server "${name}" is this gateway itself; it is left out.`)
        else if (left.length > 0)
          result.problems.push(`${file}: server "${name}" is left out: it ${describeForeign(left)}`)
        else if (isRecord(raw)) result.servers.push({ client, file, name, raw, entry })
      } catch (error) {
        if (!(error instanceof EntryProblem)) throw error
        const reason = `${error.path.length > 0 ? `"${error.path.join('.')}" ` : ''}${error.message}`
        result.problems.push(describeProblem(file, { server: name, line: lineOf(error.path), reason, fatal: true }))
      }
    }
  }
  return result
}

async function locate(file: string): Promise<LocatedJson> {
  try {
    return parseJsonWithLines(await readFile(file, 'utf8'))
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw unusable(`${file}, line ${error.line}: ${error.message}.`)
    const isMissing = error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
    throw unusable(`${file} can't be used: ${isMissing ? 'there is no such file' : messageOf(error)}.`, isMissing)
  }
}

/** `silent`: nothing to speak of where the file was only looked for. */
function unusable(message: string, silent = false): AppError {
  return new AppError('invalid', 'registry_unreadable', message, { details: { silent } })
}

/** Whoever has moved to the gateway has it in their client's file: it must not become a child of itself. */
export function isThisGateway(entry: ServerEntry): boolean {
  if (entry.kind !== 'local') return false
  const words = [entry.command, ...entry.args]
  return words.includes('gateway') && words.some((word) => /(^|[/\\])mcp-orchestrator(\.cmd|[@:][^/\\]*)?$/.test(word))
}
