/**
 * Compares large files, in a worker. Only a part of the rows is returned, because nobody reads more than that and each row costs memory
 * in the page.
 */
import { structuredPatch } from 'diff'
import type { DiffRow } from './diff-row.ts'

const TIMEOUT_MS = 4000
const CONTEXT_LINES = 3
/** Longer lines are cut off here; the whole line is in the file. */
const MAX_LINE_CHARS = 2000
export const MAX_ROWS = 5000

export interface LargeDiff {
  rows: DiffRow[]
  added: number
  removed: number
}

export function largeDiff(before: string, after: string): LargeDiff {
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT_LINES, timeout: TIMEOUT_MS })
  if (!patch) return replaced(before, after)
  const result: LargeDiff = { rows: [], added: 0, removed: 0 }
  let seen = 1
  for (const { lines, oldStart, newStart, oldLines } of patch.hunks) {
    addGap(result, oldStart - seen)
    addHunk(result, lines, oldStart, newStart)
    seen = oldStart + oldLines
  }
  return closed(result)
}

function addGap({ rows }: LargeDiff, unchanged: number): void {
  if (unchanged <= 0 || rows.length >= MAX_ROWS) return
  rows.push({ kind: 'gap', text: `${unchanged.toLocaleString()} unchanged lines` })
}

function addHunk(result: LargeDiff, lines: readonly string[], oldStart: number, newStart: number): void {
  let [oldLine, newLine] = [oldStart, newStart]
  for (const line of lines) {
    const text = line.slice(1, MAX_LINE_CHARS + 1)
    if (line.startsWith('+')) push(result, { kind: 'added', text, after: newLine++ })
    else if (line.startsWith('-')) push(result, { kind: 'removed', text, before: oldLine++ })
    else if (!line.startsWith('\\')) push(result, { kind: 'same', text, before: oldLine++, after: newLine++ })
  }
}

/** The comparison took too long: the lines between the first and the last difference were replaced. */
function replaced(before: string, after: string): LargeDiff {
  const [old, now] = [before.split('\n'), after.split('\n')]
  let head = 0
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head++
  let tail = 0
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++
  const result: LargeDiff = { rows: [], added: 0, removed: 0 }
  addGap(result, head)
  for (let at = head; at < old.length - tail; at++) push(result, lineRow('removed', old[at], { before: at + 1 }))
  for (let at = head; at < now.length - tail; at++) push(result, lineRow('added', now[at], { after: at + 1 }))
  addGap(result, tail)
  return closed(result)
}

const lineRow = (
  kind: 'added' | 'removed',
  line: string | undefined,
  at: Pick<DiffRow, 'before' | 'after'>
): DiffRow => ({
  kind,
  text: (line ?? '').slice(0, MAX_LINE_CHARS),
  ...at
})

function push(result: LargeDiff, row: DiffRow): void {
  if (row.kind === 'added') result.added += 1
  if (row.kind === 'removed') result.removed += 1
  if (result.rows.length < MAX_ROWS) result.rows.push(row)
}

function closed(result: LargeDiff): LargeDiff {
  const shown = result.rows.filter(({ kind }) => kind === 'added' || kind === 'removed').length
  const left = result.added + result.removed - shown
  if (left > 0)
    result.rows.push({
      kind: 'gap',
      text: `${left.toLocaleString()} more changed lines: download both versions to see them`
    })
  return result
}
