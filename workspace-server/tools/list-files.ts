import { type Dirent, lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { plural } from '../../server/lib/plural.ts'
import { resolveExpected } from '../files/path-target.ts'
import type { WorkspaceRoot } from '../files/workspace-root.ts'
import { asToolError } from './system-error.ts'
import { objectSchema, READS, type Tool, type ToolContext, ToolError, type ToolReply } from './tool.ts'
import { ToolArguments } from './tool-arguments.ts'

const DEFAULT_ENTRIES = 1000
const MAX_ENTRIES = 10_000
const MAX_DEPTH = 64
/** For paths: each is in the reply twice, and the reply must fit into one message. */
const MAX_PATH_CHARS = 700_000
const ENTRIES_PER_TURN = 500

type FileType = 'file' | 'directory' | 'symlink' | 'other'

interface ListedFile {
  path: string
  type: FileType
  size: number
  /** Only for files, in whole milliseconds, which a restored file keeps. */
  mtimeMs?: number
  target?: string
}

export function listFilesTool(root: WorkspaceRoot): Tool {
  return {
    name: 'list_files',
    title: 'List files',
    description:
      'Lists a folder of the workspace with types and sizes, sorted by name, hidden files included. With recursive, everything below it too. Symbolic links are shown, not followed.',
    inputSchema: objectSchema({
      path: { type: 'string', description: 'The folder. Defaults to the whole workspace.' },
      recursive: { type: 'boolean', description: 'Default false.' },
      maxEntries: {
        type: 'integer',
        minimum: 1,
        maximum: MAX_ENTRIES,
        description: `Stop after this many entries. Defaults to ${DEFAULT_ENTRIES}.`
      }
    }),
    outputSchema: objectSchema(
      {
        path: { type: 'string' },
        entries: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              path: { type: 'string', description: 'Relative to the workspace.' },
              type: { type: 'string', enum: ['file', 'directory', 'symlink', 'other'] },
              size: { type: 'integer' },
              mtimeMs: { type: 'integer', description: 'When a file was last changed.' },
              target: { type: 'string', description: 'The target of a symlink.' }
            },
            required: ['path', 'type', 'size'],
            additionalProperties: false
          }
        },
        truncated: { type: 'boolean' }
      },
      'path',
      'entries',
      'truncated'
    ),
    annotations: READS,
    run: async (args, context) => list(root, args, context)
  }
}

async function list(
  root: WorkspaceRoot,
  args: Record<string, unknown>,
  { signal, expected }: ToolContext
): Promise<ToolReply> {
  const given = new ToolArguments(args, ['path', 'recursive', 'maxEntries'])
  const path = given.path('path', '.')
  const recursive = given.flag('recursive')
  const limit = given.integer('maxEntries', { min: 1, max: MAX_ENTRIES }) ?? DEFAULT_ENTRIES
  try {
    const real = resolveExpected(root, path, expected)
    if (!lstatSync(real).isDirectory()) throw new ToolError(`"${path}" is not a folder; use read_file for files.`)
    const listing = new Listing(limit, recursive ? MAX_DEPTH : 1, signal)
    const shown = root.relative(real)
    await listing.add(real, shown === '.' ? '' : `${shown}/`, 1)
    return report(shown, listing)
  } catch (error) {
    throw asToolError(error, path)
  }
}

class Listing {
  readonly entries: ListedFile[] = []
  truncated = false
  #chars = 0
  readonly #limit: number
  readonly #maxDepth: number
  readonly #signal: AbortSignal

  constructor(limit: number, maxDepth: number, signal: AbortSignal) {
    this.#limit = limit
    this.#maxDepth = maxDepth
    this.#signal = signal
  }

  async add(folder: string, shown: string, depth: number): Promise<void> {
    for (const child of sortedChildren(folder)) {
      if (this.truncated || this.#signal.aborted) return
      if (this.entries.length >= this.#limit || this.#chars > MAX_PATH_CHARS) {
        this.truncated = true
        return
      }
      const real = `${folder}/${child.name}`
      const entry = describe(real, `${shown}${child.name}`)
      this.#chars += entry.path.length + (entry.target?.length ?? 0)
      this.entries.push(entry)
      if (this.entries.length % ENTRIES_PER_TURN === 0) await nextTurn()
      if (!child.isDirectory()) continue
      if (depth < this.#maxDepth) await this.add(real, `${shown}${child.name}/`, depth + 1)
      else if (this.#maxDepth > 1) this.truncated = true
    }
  }
}

/**
 * Sorts by code units, which are the same on every machine, unlike a locale. A folder that is gone or closed to us has no
 * children.
 */
function sortedChildren(folder: string): Dirent[] {
  try {
    const children = readdirSync(folder, { withFileTypes: true })
    return children.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  } catch {
    return []
  }
}

function describe(real: string, path: string): ListedFile {
  const stats = statsOf(real)
  if (!stats) return { path, type: 'other', size: 0 }
  if (stats.isFile()) return { path, type: 'file', size: stats.size, mtimeMs: Math.round(stats.mtimeMs) }
  if (stats.isDirectory()) return { path, type: 'directory', size: 0 }
  if (!stats.isSymbolicLink()) return { path, type: 'other', size: 0 }
  return { path, type: 'symlink', size: stats.size, target: targetOf(real) }
}

/** Returns undefined if it is gone by now, or its folder is closed to us. */
function statsOf(real: string): Stats | undefined {
  try {
    return lstatSync(real, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

function targetOf(real: string): string {
  try {
    return readlinkSync(real)
  } catch {
    return ''
  }
}

function report(path: string, { entries, truncated }: Listing): ToolReply {
  const lines = entries.map((entry) => {
    if (entry.type === 'directory') return `${entry.path}/`
    if (entry.type === 'symlink') return `${entry.path} -> ${entry.target}`
    return entry.type === 'file' ? `${entry.path} (${plural(entry.size, 'byte')})` : `${entry.path} (special file)`
  })
  if (entries.length === 0) lines.push('(empty)')
  if (truncated)
    lines.push(
      `[cut after ${entries.length === 1 ? '1 entry' : `${entries.length} entries`}; list a folder further down, or raise maxEntries]`
    )
  return { content: [{ type: 'text', text: lines.join('\n') }], structuredContent: { path, entries, truncated } }
}
