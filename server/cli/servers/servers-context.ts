import { createInterface } from 'node:readline/promises'
import { escapeJson, terminalText } from '../../../contract/hidden-characters.ts'
import type { Registry } from '../../catalog/registry.ts'
import type { ServerEntry } from '../../catalog/server-entry.ts'
import type { Settings } from '../../config/settings.ts'
import { AppError } from '../../lib/errors.ts'
import type { CommandInput } from '../command.ts'
import { usageError } from '../usage-error.ts'

export interface ServersContext {
  settings: Settings
  file: string
  registry: Registry
  names: string[]
  flags: CommandInput['flags']
  rest: string[]
  json: boolean
}

export function print(context: ServersContext, data: unknown, lines: string[]): void {
  // Names, errors and logs are hostile: they must not control the terminal, hide characters, or start another line.
  const text = context.json ? [shownJson(data)] : lines.map(terminalRow)
  process.stdout.write(text.map((line) => `${line}\n`).join(''))
}

/** Like `terminalLine`, but keeps the spaces between columns. */
function terminalRow(line: string): string {
  return terminalText(line).replaceAll('\n', '⟨U+000A⟩').trimEnd()
}

/** Line by line, so that hidden characters become escapes but line breaks stay. */
function shownJson(data: unknown): string {
  return (JSON.stringify(data, null, 2) ?? 'null').split('\n').map(escapeJson).join('\n')
}

/** The servers that were named, or all. */
export function chosen({ registry, names, file }: ServersContext): ServerEntry[] {
  if (names.length === 0) return [...registry.servers.values()]
  return names.map((name) => {
    const entry = registry.servers.get(name)
    if (entry) return entry
    throw new AppError('not-found', 'unknown_server', `There is no server "${name}" in ${file}.`)
  })
}

export function oneName({ names }: ServersContext): string {
  const [name] = names
  if (name !== undefined && names.length === 1) return name
  throw usageError('Name one server. See mcp-orchestrator servers --help.')
}

/** Without a terminal, the answer is no. */
export async function askedYes(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}
