import { basename } from 'node:path'
import { isRecord } from '../../lib/is-record.ts'
import { isPlaceholder } from '../placeholders.ts'
import { ANY_PLACEHOLDER, foreignIn, isOfClient, nestedIn } from './foreign-placeholders.ts'
import type { ImportContext } from './import-context.ts'

export interface Translated {
  raw: unknown
  /** Placeholders of another client that have no meaning here. */
  left: string[]
  /** Notes for the user about the translation; sentences without the full stop. */
  notes: string[]
}

/** Fields in which we fill placeholders. */
const FILLED = new Set(['env', 'headers'])
/** Fields in which another client fills its own placeholders. */
const READ = new Set(['command', 'args', 'cwd', 'url', 'serverUrl', 'envFile'])

/**
 * A bare name is an environment variable (Claude Code), and so is `env:` (VS Code, Cursor, and here). What VS Code asks the user
 * for (`input:`) becomes a secret. Folders are replaced by their paths on this machine. Nothing else can be translated.
 */
export function translatePlaceholders(raw: unknown, context: ImportContext = {}): Translated {
  const left = new Set<string>()
  const notes = new Set<string>()
  if (!isRecord(raw)) return { raw, left: [], notes: [] }
  const byDefault = (whole: string): string | undefined => {
    const [, name = '', usual] = /^\$\{([A-Za-z_]\w*):-([^{}]*)\}$/.exec(whole) ?? []
    // If the variable is set, its value may be a secret or another address, which must be neither written to the file nor ignored.
    if (usual === undefined || !context.environment || context.environment[name]) return undefined
    notes.add(`${whole} is written as its default "${usual}", because ${name} is not set now`)
    return usual
  }
  const fill = (text: string) => {
    for (const nested of nestedIn(text)) left.add(nested)
    return text.replace(ANY_PLACEHOLDER, (whole) => {
      const ours = folderOf(whole, context) ?? asOurs(whole, context)
      if (ours !== undefined) return ours
      const usual = byDefault(whole)
      if (usual === undefined) left.add(whole)
      return usual ?? whole
    })
  }
  const read = (word: string) =>
    word.replace(ANY_PLACEHOLDER, (whole) => {
      if (!isOfClient(raw.command, word, whole)) return whole
      return folderOf(whole, context) ?? homeOf(whole, context) ?? byDefault(whole) ?? whole
    })
  const entries = Object.entries(raw).map(([key, value]) => {
    if (FILLED.has(key) && isRecord(value)) return [key, mapTexts(value, fill)]
    if (!READ.has(key)) return [key, value]
    const words = Array.isArray(value) ? value.map((word) => (typeof word === 'string' ? read(word) : word)) : value
    const filled = typeof words === 'string' ? read(words) : words
    for (const found of foreignIn(raw.command, filled)) left.add(found)
    return [key, filled]
  })
  return { raw: Object.fromEntries(entries), left: [...left], notes: [...notes] }
}

function mapTexts(values: Record<string, unknown>, fill: (text: string) => string): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, text]) => [name, typeof text === 'string' ? fill(text) : text])
  )
}

/** The same placeholder in our form. */
function asOurs(whole: string, { environment }: ImportContext): string | undefined {
  const [, name, usual] = /^\$\{([A-Za-z_]\w*)(:-[^{}]*)?\}$/.exec(whole) ?? []
  if (name !== undefined && (usual === undefined || environment?.[name])) return `\${env:${name}}`
  const [, asked] = /^\$\{input:([^{}]+)\}$/.exec(whole) ?? []
  if (asked !== undefined) return `\${secret:${asked.replace(/[^\w.-]/g, '_').replace(/^(?![A-Za-z_])/, '_')}}`
  return isPlaceholder(whole) ? whole : undefined
}

function folderOf(whole: string, { home, workspace }: ImportContext): string | undefined {
  const name = whole.slice(2, -1)
  if (name === 'userHome') return home
  if (name === 'workspaceFolder' || name === 'CLAUDE_PROJECT_DIR') return workspace
  if (name === 'workspaceFolderBasename') return workspace === undefined ? undefined : basename(workspace)
  return name === 'pathSeparator' || name === '/' ? '/' : undefined
}

/** A home folder is not a secret, so a command line may contain it. */
function homeOf(whole: string, { home }: ImportContext): string | undefined {
  return /^\$\{(env:)?HOME\}$/.test(whole) ? home : undefined
}
