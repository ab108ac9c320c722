/** The files of other MCP clients: where they are, and which servers they contain. Only reads them. */
import { dirname, extname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import { isMissingFile, readSmallFile, whyUnreadable } from '../../lib/files/read-small-file.ts'
import { EntryProblem } from '../entry-values.ts'
import { JsonSyntaxError, type LocatedJson, parseJsonWithLines } from '../json-with-lines.ts'
import { describeProblem } from '../registry.ts'
import type { ImportContext } from './import-context.ts'
import { disabledMcpJson, type ServerList, serverLists } from './server-lists.ts'
import { isThisGateway } from './this-gateway.ts'
import { type TranslatedEntry, translateEntry } from './translate-entry.ts'

export interface FoundServer extends TranslatedEntry {
  client: string
  file: string
  name: string
  /** The folder that the server is for, if it is for one folder only. */
  project?: string
}

export interface ClientServers {
  servers: FoundServer[]
  /** One sentence for each thing that can't be imported, with the reason. */
  problems: string[]
}

/** The folders to search, and what may be read. */
export interface ImportPlace {
  home: string
  folder: string
  environment: Record<string, string | undefined>
}

const MAX_BYTES = 64 * 1024 * 1024
const MAX_ENV_BYTES = 1024 * 1024
const CODE = ['.config/Code/User', 'Library/Application Support/Code/User']
const CLINE = 'globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json'

/** The files in which other clients keep their servers, below the user's home and the current folder. */
const FILES: [client: string, path: string][] = [
  ['Claude Desktop', '.config/Claude/claude_desktop_config.json'],
  ['Claude Desktop', 'Library/Application Support/Claude/claude_desktop_config.json'],
  ['Claude Code', '.claude.json'],
  ['Cursor', '.cursor/mcp.json'],
  ...CODE.map((path): [string, string] => ['VS Code', `${path}/mcp.json`]),
  ...CODE.map((path): [string, string] => ['VS Code', `${path}/settings.json`]),
  ...CODE.map((path): [string, string] => ['Cline', `${path}/${CLINE}`]),
  ['Windsurf', '.codeium/windsurf/mcp_config.json'],
  ['Zed', '.config/zed/settings.json'],
  ['Gemini CLI', '.gemini/settings.json'],
  ['Codex', '.codex/config.toml']
]
const LOCAL: [client: string, path: string][] = [
  ['Claude Code', '.mcp.json'],
  ['Cursor', '.cursor/mcp.json'],
  ['VS Code', '.vscode/mcp.json'],
  ['Zed', '.zed/settings.json'],
  ['Gemini CLI', '.gemini/settings.json']
]
/** The formats of the Codex CLI and LibreChat. */
const OTHER_FORMATS: Record<string, string> = { '.toml': 'TOML', '.yaml': 'YAML', '.yml': 'YAML' }

/** The servers in all those files. An unreadable file or entry does not hide the others. */
export async function findClientServers(place: ImportPlace): Promise<ClientServers> {
  const files = [
    ...FILES.map(([, path]) => join(place.home, path)),
    ...LOCAL.map(([, path]) => join(place.folder, path))
  ]
  const found = await Promise.all(
    [...new Set(files)].map((file) =>
      readClientFile(file, place).catch((error): ClientServers => {
        const isSilent = isAppError(error) && error.details.silent === true
        return { servers: [], problems: isSilent ? [] : [messageOf(error)] }
      })
    )
  )
  return { servers: found.flatMap(({ servers }) => servers), problems: found.flatMap(({ problems }) => problems) }
}

/** Throws if the file as a whole can't be used. */
export async function readClientFile(file: string, place: ImportPlace): Promise<ClientServers> {
  const located = await locate(file)
  const lists = serverLists(located.value, file, place.folder)
  if (lists.length === 0) throw unusable(`${file} has no servers: it needs an object "mcpServers".`, true)
  const result: ClientServers = { servers: [], problems: [] }
  const known = knownFile(file, place.home)
  const off = known?.path === '.mcp.json' ? await offInProject(dirname(file), place.home) : []
  for (const { path, list, project, isOff } of lists) {
    const workspace = project ?? known?.workspace
    const context: ImportContext = {
      ...(known ? { client: known.client } : {}),
      home: place.home,
      environment: place.environment,
      ...(workspace === undefined ? {} : { workspace }),
      envFileNames
    }
    const source = { client: known?.client ?? file, file, ...(project === undefined ? {} : { project }) }
    const lineOf = (inner: string[]) => located.lineOf([...path, ...inner])
    readList({ list, isOff: (name) => isOff(name) || off.includes(name), lineOf, context, source }, result)
  }
  return result
}

interface ListSource extends Pick<ServerList, 'list' | 'isOff'> {
  lineOf(path: string[]): number
  context: ImportContext
  source: Pick<FoundServer, 'client' | 'file' | 'project'>
}

function readList({ list, isOff, lineOf, context, source }: ListSource, result: ClientServers): void {
  const { file } = source
  for (const [name, theirs] of Object.entries(list)) {
    try {
      const off = isOff(name) && typeof theirs === 'object' ? { ...theirs, enabled: false } : theirs
      const found = translateEntry(name, off, 0, context)
      if (isThisGateway(found.entry))
        result.problems.push(`${file}: server "${name}" is this gateway itself; it is left out.`)
      else result.servers.push({ ...source, name, ...found })
    } catch (error) {
      if (!(error instanceof EntryProblem)) throw error
      const line = lineOf([name, ...error.path])
      result.problems.push(describeProblem(file, { server: name, line, reason: error.sentence, fatal: true }))
    }
  }
}

/** The client that the file belongs to, and the folder if it is not the user's own file. */
function knownFile(file: string, home: string): { client: string; path: string; workspace?: string } | undefined {
  const isAt = ([, path]: [string, string]) => file.endsWith(`/${path}`)
  const [client, path] = LOCAL.find(isAt) ?? FILES.find(isAt) ?? []
  if (client !== undefined && path !== undefined) {
    const folder = file.slice(0, -path.length - 1)
    const isUsers = folder === home && FILES.some(isAt)
    return { client, path, ...(LOCAL.some(isAt) && !isUsers ? { workspace: folder } : {}) }
  }
  return file.endsWith('/cline_mcp_settings.json') ? { client: 'Cline', path: CLINE } : undefined
}

/** Names of servers that the user has switched off in Claude Code for the project. */
async function offInProject(folder: string, home: string): Promise<string[]> {
  const files = [
    join(home, '.claude.json'),
    ...['settings', 'settings.local'].map((n) => `${folder}/.claude/${n}.json`)
  ]
  const values = await Promise.all(files.map((file) => locate(file).catch(() => undefined)))
  return values.flatMap((located) => disabledMcpJson(located?.value, folder))
}

function envFileNames(file: string): string[] {
  return Object.keys(parseEnv(readSmallFile(file, MAX_ENV_BYTES)))
}

async function locate(file: string): Promise<LocatedJson> {
  try {
    const text = readSmallFile(file, MAX_BYTES)
    const format = OTHER_FORMATS[extname(file)]
    if (format !== undefined) throw otherFormat(file, format, /mcp_?servers/i.test(text))
    return parseJsonWithLines(text)
  } catch (error) {
    if (isAppError(error)) throw error
    if (error instanceof JsonSyntaxError) throw unusable(`${file}, ${error.place}: ${error.message}.`)
    throw unusable(`${file} can't be used: ${whyUnreadable(error)}.`, isMissingFile(error))
  }
}

function otherFormat(file: string, format: string, hasServers: boolean): AppError {
  const how = 'add each of its servers with "mcp-orchestrator servers add NAME -- COMMAND …" (or --url URL)'
  return unusable(`${file} is ${format}, and only JSON can be imported: ${how}.`, !hasServers)
}

/** With `silent`, a missing file is not reported. */
function unusable(message: string, silent = false): AppError {
  return new AppError('invalid', 'registry_unreadable', message, { details: { silent } })
}
