import { basename } from 'node:path'
import { isRecord } from '../../lib/is-record.ts'

type Raw = Record<string, unknown>

/** One list of servers in a client's file. */
export interface ServerList {
  path: string[]
  list: Raw
  /** The folder that the list is for, if it is for one folder only. */
  project?: string
  /** Servers that the client has switched off outside their entries. */
  isOff(name: string): boolean
}

const NEVER = () => false

/** `folder` is the current folder. */
export function serverLists(value: unknown, file: string, folder: string | undefined): ServerList[] {
  if (!isRecord(value)) return []
  const plain = [['mcpServers'], ['servers'], ['context_servers'], ['mcp', 'servers']]
  if (/^opencode\./.test(basename(file))) plain.push(['mcp'])
  const isOff = isOffInFile(value, folder)
  const common = plain.flatMap((path) => {
    const list = path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value)
    return isRecord(list) ? [{ path, list, isOff }] : []
  })
  return [...common, ...projectLists(value.projects)]
}

/** Claude Code keeps the servers of single projects in the user's own file. */
function projectLists(projects: unknown): ServerList[] {
  if (!isRecord(projects)) return []
  return Object.entries(projects).flatMap(([project, about]) => {
    const list = isRecord(about) ? about.mcpServers : undefined
    if (!isRecord(about) || !isRecord(list) || Object.keys(list).length === 0) return []
    const off = names(about.disabledMcpServers)
    return [{ path: ['projects', project, 'mcpServers'], list, project, isOff: (name: string) => off.includes(name) }]
  })
}

/** Gemini CLI: `mcp.excluded` and `mcp.allowed`. Claude Code: servers that are switched off in the current folder. */
function isOffInFile(value: Raw, folder: string | undefined): ServerList['isOff'] {
  const { mcp, projects } = value
  const here = folder !== undefined && isRecord(projects) ? projects[folder] : undefined
  const excluded = [
    ...(isRecord(mcp) ? names(mcp.excluded) : []),
    ...(isRecord(here) ? names(here.disabledMcpServers) : [])
  ]
  const allowed = isRecord(mcp) && Array.isArray(mcp.allowed) ? names(mcp.allowed) : undefined
  if (excluded.length === 0 && allowed === undefined) return NEVER
  return (name) => excluded.includes(name) || allowed?.includes(name) === false
}

/** The servers of a project's `.mcp.json` that a user has switched off: from `~/.claude.json` and the project's own settings. */
export function disabledMcpJson(value: unknown, folder: string): string[] {
  if (!isRecord(value)) return []
  const here = isRecord(value.projects) ? value.projects[folder] : undefined
  return [...names(value.disabledMcpjsonServers), ...(isRecord(here) ? names(here.disabledMcpjsonServers) : [])]
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}
