import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject } from './entry-values.ts'
import { parseJsonWithLines } from './json-with-lines.ts'
import { readEntry } from './read-entry.ts'
import type { ServerEntry } from './server-entry.ts'

export interface FoundServer {
  client: string
  file: string
  name: string
  raw: Record<string, unknown>
  entry: ServerEntry
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

/** The servers in the files of Claude Desktop, Claude Code, Cursor, VS Code and Windsurf; a file or entry that can't be read is skipped. */
export async function findClientServers(home: string, folder: string): Promise<FoundServer[]> {
  const files = [
    ...FILES.map(([client, [path = '']]) => ({ client, file: join(home, path) })),
    ...LOCAL.map(([client, path]) => ({ client, file: join(folder, path) }))
  ]
  const found = await Promise.all(files.map(({ client, file }) => readClientFile(client, file)))
  return found.flat()
}

export async function readClientFile(client: string, file: string): Promise<FoundServer[]> {
  let value: unknown
  try {
    value = parseJsonWithLines(await readFile(file, 'utf8')).value
  } catch {
    return []
  }
  const listed = isObject(value) ? (value.mcpServers ?? value.servers) : undefined
  if (!isObject(listed)) return []
  return Object.entries(listed).flatMap(([name, raw]) => {
    try {
      return isObject(raw) ? [{ client, file, name, raw, entry: readEntry(name, raw, 0) }] : []
    } catch {
      return []
    }
  })
}
