import { type ChangedFile, type ChangeKind, changeKind, type FileSide } from '../../../contract/effects/change-set.ts'
import { bytes, count } from '../format.ts'

export const KIND_WORDS: Record<ChangeKind, string> = {
  created: 'new',
  changed: 'changed',
  deleted: 'deleted',
  renamed: 'renamed',
  mode: 'permissions'
}
export const KIND_TONES: Record<ChangeKind, string> = {
  created: 'bg-ok-soft text-ok',
  changed: 'bg-accent-soft text-accent-ink',
  deleted: 'bg-danger-soft text-danger',
  renamed: 'bg-warn-soft text-warn',
  mode: 'bg-sunken text-muted'
}

/** A file that is new in the fork may be in the workspace too by now. */
export function kindWords(file: ChangedFile): string {
  const kind = changeKind(file)
  return kind === 'created' && file.conflict?.now ? 'new in the fork' : KIND_WORDS[kind]
}

/** Says that both sides changed a file, and whether someone has chosen a version. */
export function conflictWords({ conflict }: ChangedFile, choice: 'fork' | 'workspace' | undefined): string {
  if (!conflict) return ''
  return choice ? 'settled' : 'conflict'
}

/** "2 new, 5 changed, 1 deleted" */
export function changesWords(files: readonly ChangedFile[]): string {
  const counts = new Map<ChangeKind, number>()
  for (const file of files) counts.set(changeKind(file), (counts.get(changeKind(file)) ?? 0) + 1)
  return [...counts].map(([kind, number]) => `${number.toLocaleString()} ${KIND_WORDS[kind]}`).join(', ')
}

const isExecutable = (side: FileSide | undefined) => side?.type === 'file' && (side.mode & 0o111) !== 0
const modeOf = (side: FileSide) => (side.type === 'link' ? '' : (side.mode & 0o7777).toString(8).padStart(4, '0'))

/** Programs give these to new files and folders. */
const USUAL_MODES = { file: [0o644, 0o755], dir: [0o755] }
const isUsual = (side: FileSide) => side.type === 'link' || USUAL_MODES[side.type].includes(side.mode & 0o7777)

/** "permissions 0644 → 0600", or "permissions 0777" of something new. Empty for what is usual. */
function modeWords({ before, after }: Pick<ChangedFile, 'before' | 'after'>): string {
  if (!after || after.type === 'link') return ''
  if (before?.type !== after.type) return isUsual(after) ? '' : `permissions ${modeOf(after)}`
  const isSaid = executionWords({ before, after }) !== '' && isUsual(before) && isUsual(after)
  return isSaid || modeOf(before) === modeOf(after) ? '' : `permissions ${modeOf(before)} → ${modeOf(after)}`
}

/** Describes changes besides the content: "made executable", "permissions 0644 → 0600", "a link to x". */
export function sideWords({ before, after }: ChangedFile): string {
  const words: string[] = []
  if (after?.type === 'link') words.push(`a link to ${after.target}`)
  if (before?.type === 'link' && after?.type !== 'link') words.push(`it was a link to ${before.target}`)
  if (after?.type === 'dir' || (!after && before?.type === 'dir')) words.push('a folder')
  words.push(executionWords({ before, after }), modeWords({ before, after }))
  return words.filter(Boolean).join(', ')
}

/** Whether a program can run the file now, or no longer can; empty if nothing changed. */
export function executionWords({ before, after }: Pick<ChangedFile, 'before' | 'after'>): string {
  if (isExecutable(after) && !isExecutable(before)) return before ? 'made executable' : 'executable'
  return isExecutable(before) && after?.type === 'file' && !isExecutable(after) ? 'no longer executable' : ''
}

export function sizeWords(side: FileSide | undefined): string {
  if (!side) return 'not there'
  if (side.type === 'file') return bytes(side.size)
  return side.type === 'dir' ? 'a folder' : `a link to ${side.target}`
}

/** Names the new files in a folder that a file would replace: no other list has them. Returns '' if there are none. */
export function insideWords({ conflict }: ChangedFile): string {
  const { inside = [], insideTotal = 0 } = conflict ?? {}
  if (inside.length === 0) return ''
  const more = insideTotal > inside.length ? ` and ${insideTotal - inside.length} more` : ''
  return `The folder there has something new in it, which goes with it: ${inside.join(', ')}${more}.`
}

/** "+1.2 kB", "−3 B" or nothing. */
export function growthWords({ before, after }: ChangedFile): string {
  const size = (side: FileSide | undefined) => (side?.type === 'file' ? side.size : 0)
  const growth = size(after) - size(before)
  if (growth === 0) return ''
  return growth > 0 ? `+${bytes(growth)}` : `−${bytes(-growth)}`
}

export const filesWords = (total: number) => count(total, 'file')
