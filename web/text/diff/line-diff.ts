/**
 * Compares two texts line by line. Unchanged lines far from a change are folded into a gap, which keeps them, so that a person can
 * open it.
 */
import type { DiffRow } from './diff-row.ts'
import { markWords } from './word-marks.ts'

const TIMEOUT_MS = 150
/** Longer lines continue in the next row. */
const ROW_CHARS = 2000
const CONTEXT_LINES = 3
/** A gap takes the place of at least this many lines. */
const MIN_FOLDED = 3

export async function lineDiff(before: string, after: string): Promise<DiffRow[]> {
  if (before === after) return []
  const { diffWordsWithSpace, structuredPatch } = await import('diff')
  const patch = structuredPatch('', '', before, after, '', '', {
    context: Number.MAX_SAFE_INTEGER,
    timeout: TIMEOUT_MS
  })
  // The comparison took too long: show all old lines as removed and all new ones as added.
  if (!patch) return bothWhole(before, after)
  // Worth a note only where one of the texts ends with a line break and the other does not.
  const isNoted = before.endsWith('\n') !== after.endsWith('\n')
  const rows = patch.hunks.flatMap(({ lines, oldStart, newStart }) =>
    hunkRows(isNoted ? lines : lines.filter((line) => !line.startsWith('\\')), oldStart, newStart)
  )
  markWords(rows, diffWordsWithSpace)
  return folded(rows).flatMap(splitLong)
}

/** All old lines, then all new ones. */
export function bothWhole(before: string, after: string): DiffRow[] {
  return [...lines(before).map(removed), ...lines(after).map(added)].flatMap(splitLong)
}

export function newFileRows(text: string): DiffRow[] {
  return lines(text).map(added).flatMap(splitLong)
}

/** For text whose place in the file is not known. */
export function unnumbered(rows: DiffRow[]): DiffRow[] {
  return rows.map(({ before: _before, after: _after, folded: inside, ...row }) => ({
    ...row,
    ...(inside && { folded: unnumbered(inside) })
  }))
}

function hunkRows(hunk: readonly string[], oldStart: number, newStart: number): DiffRow[] {
  let [oldLine, newLine] = [oldStart, newStart]
  return hunk.map((line): DiffRow => {
    const text = line.slice(1)
    if (line.startsWith('+')) return { kind: 'added', text, after: newLine++ }
    if (line.startsWith('-')) return { kind: 'removed', text, before: oldLine++ }
    if (line.startsWith('\\')) return { kind: 'gap', text: 'No line break at the end of the file' }
    return { kind: 'same', text, before: oldLine++, after: newLine++ }
  })
}

function folded(rows: DiffRow[]): DiffRow[] {
  const result: DiffRow[] = []
  for (let at = 0; at < rows.length; ) {
    const row = rows[at] as DiffRow
    if (row.kind !== 'same') {
      result.push(row)
      at += 1
      continue
    }
    let end = at
    while (rows[end]?.kind === 'same') end++
    const from = at === 0 ? 0 : Math.min(end, at + CONTEXT_LINES)
    const to = end === rows.length ? end : Math.max(from, end - CONTEXT_LINES)
    if (to - from < MIN_FOLDED) result.push(...rows.slice(at, end))
    else result.push(...rows.slice(at, from), gapOf(rows.slice(from, to)), ...rows.slice(to, end))
    at = end
  }
  return result
}

function gapOf(rows: DiffRow[]): DiffRow {
  return { kind: 'gap', text: `${rows.length.toLocaleString()} unchanged lines`, folded: rows.flatMap(splitLong) }
}

function lines(text: string): string[] {
  if (text === '') return []
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
}
const added = (text: string, index: number): DiffRow => ({ kind: 'added', text, after: index + 1 })
const removed = (text: string, index: number): DiffRow => ({ kind: 'removed', text, before: index + 1 })

function splitLong(row: DiffRow): DiffRow[] {
  if (row.text.length <= ROW_CHARS) return [row]
  const rows: DiffRow[] = []
  for (let from = 0; from < row.text.length; from += ROW_CHARS) {
    const text = row.text.slice(from, from + ROW_CHARS)
    rows.push(from === 0 ? { ...row, text } : { kind: row.kind, text })
  }
  return rows
}
