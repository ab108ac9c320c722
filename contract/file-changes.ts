/** Changes that people make in the workspace themselves, without the model. The log records them, and the next message tells the model. */
import { z } from 'zod'

const FILE_ACTIONS = ['uploaded', 'edited', 'created', 'moved', 'deleted', 'reverted'] as const

const path = z.string().max(4096)
export const fileChange = z.object({ action: z.enum(FILE_ACTIONS), path, to: path.optional() })
export type FileChange = z.infer<typeof fileChange>

export const FILES_CHANGED = 'files_changed'
/** Maximum number of changes in one entry of the transcript. */
export const MAX_FILE_CHANGES = 200
const MAX_NAMED = 5
const MAX_NAMED_FOR_MODEL = 30
const MAX_PATH_CHARS = 200

/** For the person: "You uploaded a.csv, b.csv and 4 more files, and deleted old.txt." */
export function filesChangedText(changes: readonly FileChange[]): string {
  const groups = byAction(changes).map(([action, items]) => `${action} ${listed(items, MAX_NAMED, shown)}`)
  return `You ${joined(groups, ', and ')}.`
}

/** For the model. A file name is hostile text, so each is quoted. */
export function filesChangedNote(changes: readonly FileChange[]): string {
  const groups = byAction(changes).map(([action, items]) => `${action} ${listed(items, MAX_NAMED_FOR_MODEL, quoted)}`)
  return `[Since your last answer, the user has changed files of the workspace: ${groups.join('; ')}.]`
}

function byAction(changes: readonly FileChange[]): [FileChange['action'], FileChange[]][] {
  const groups = new Map<FileChange['action'], Map<string, FileChange>>()
  for (const change of changes) {
    const group = groups.get(change.action) ?? new Map()
    groups.set(change.action, group.set(JSON.stringify([change.path, change.to]), change))
  }
  return [...groups].map(([action, items]) => [action, [...items.values()]])
}

function listed(items: readonly FileChange[], most: number, write: (path: string) => string): string {
  const names = items
    .slice(0, most)
    .map(({ path: from, to }) => (to === undefined ? write(from) : `${write(from)} to ${write(to)}`))
  const more = items.length - names.length
  if (more > 0) names.push(`${more} more ${more === 1 ? 'file' : 'files'}`)
  return joined(names, ' and ')
}

function joined(parts: readonly string[], last: string): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')}${last}${parts.at(-1)}`
}

const shown = (name: string) =>
  (name.length > MAX_PATH_CHARS ? `${name.slice(0, MAX_PATH_CHARS)}…` : name).toWellFormed()
const quoted = (name: string) => JSON.stringify(shown(name))
