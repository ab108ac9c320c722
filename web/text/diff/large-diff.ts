/**
 * Compares large files, in a worker. Only a part of the rows is returned, because nobody reads more than that and each row costs memory
 * in the page.
 */
import { structuredPatch } from 'diff'
import type { DiffRow } from './diff-row.ts'

const TIMEOUT_MS = 4000
const CONTEXT_LINES = 3
/** Longer lines continue in the next row. */
const ROW_CHARS = 2000
export const MAX_ROWS = 5000

export interface LargeDiff {
  rows: DiffRow[]
  added: number
  removed: number
}

/** With what the person must know about the encoding. */
export interface NotedDiff extends LargeDiff {
  note: string
}

export function largeDiff(before: string, after: string): LargeDiff {
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT_LINES, timeout: TIMEOUT_MS })
  if (!patch) return replaced(before, after)
  const result = new BoundedRows()
  let seen = 1
  for (const { lines, oldStart, newStart, oldLines } of patch.hunks) {
    result.addGap(oldStart - seen)
    addHunk(result, lines, oldStart, newStart)
    seen = oldStart + oldLines
  }
  return result.closed()
}

function addHunk(result: BoundedRows, lines: readonly string[], oldStart: number, newStart: number): void {
  let [oldLine, newLine] = [oldStart, newStart]
  for (const line of lines) {
    const text = line.slice(1)
    if (line.startsWith('+')) result.add({ kind: 'added', text, after: newLine++ })
    else if (line.startsWith('-')) result.add({ kind: 'removed', text, before: oldLine++ })
    else if (!line.startsWith('\\')) result.add({ kind: 'same', text, before: oldLine++, after: newLine++ })
  }
}

/** The comparison took too long: the lines between the first and the last difference were replaced. */
function replaced(before: string, after: string): LargeDiff {
  const [old, now] = [before.split('\n'), after.split('\n')]
  let head = 0
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head++
  let tail = 0
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++
  const result = new BoundedRows()
  result.addGap(head)
  for (let at = head; at < old.length - tail; at++) result.add({ kind: 'removed', text: old[at] ?? '', before: at + 1 })
  for (let at = head; at < now.length - tail; at++) result.add({ kind: 'added', text: now[at] ?? '', after: at + 1 })
  result.addGap(tail)
  return result.closed()
}

class BoundedRows {
  #rows: DiffRow[] = []
  #counts = { added: 0, removed: 0 }
  /** Changed lines that are left out, or of which the end is. */
  #left = 0

  addGap(unchanged: number): void {
    if (unchanged <= 0 || this.#rows.length >= MAX_ROWS) return
    this.#rows.push({ kind: 'gap', text: `${unchanged.toLocaleString()} unchanged lines` })
  }

  /** A line of any length is shown whole: its end could be the part that matters. */
  add({ text, ...row }: DiffRow): void {
    const isChanged = row.kind === 'added' || row.kind === 'removed'
    if (row.kind === 'added' || row.kind === 'removed') this.#counts[row.kind] += 1
    for (let from = 0; from === 0 || from < text.length; from += ROW_CHARS) {
      if (this.#rows.length >= MAX_ROWS) {
        if (isChanged) this.#left += 1
        return
      }
      const part = text.slice(from, from + ROW_CHARS)
      this.#rows.push(from === 0 ? { ...row, text: part } : { kind: row.kind, text: part })
    }
  }

  closed(): LargeDiff {
    const text = `${this.#left.toLocaleString()} more changed lines: download both versions to see them`
    return { rows: this.#left === 0 ? this.#rows : [...this.#rows, { kind: 'gap', text }], ...this.#counts }
  }
}
