import type { diffWordsWithSpace } from 'diff'
import type { DiffRow, Mark } from './diff-row.ts'

const MAX_LINE_CHARS = 1000
const MAX_PAIRS = 1000
const TIMEOUT_MS = 10
/** Lines with less in common are different lines, and marks would only distract. */
const MIN_COMMON = 0.4

/** Marks the words that changed in lines that were replaced one by one. Changes the rows in place. */
export function markWords(rows: DiffRow[], compare: typeof diffWordsWithSpace): void {
  let pairs = 0
  for (let at = 0; at < rows.length; at++) {
    if (rows[at]?.kind !== 'removed') continue
    const gone = runOf(rows, at, 'removed')
    const come = runOf(rows, at + gone.length, 'added')
    at += gone.length + come.length - 1
    if (gone.length !== come.length) continue
    for (const [index, row] of gone.entries()) {
      const other = come[index]
      if (!other || ++pairs > MAX_PAIRS) return
      markPair(row, other, compare)
    }
  }
}

function runOf(rows: DiffRow[], from: number, kind: DiffRow['kind']): DiffRow[] {
  let end = from
  while (rows[end]?.kind === kind) end++
  return rows.slice(from, end)
}

function markPair(gone: DiffRow, come: DiffRow, compare: typeof diffWordsWithSpace): void {
  const longer = Math.max(gone.text.length, come.text.length)
  if (longer > MAX_LINE_CHARS) return
  const changes = compare(gone.text, come.text, { timeout: TIMEOUT_MS })
  if (!changes) return
  const common = changes.reduce((sum, { added, removed, value }) => sum + (added || removed ? 0 : value.length), 0)
  if (common < longer * MIN_COMMON) return
  gone.marks = marksOf(changes.filter(({ added }) => !added).map(({ value, removed }) => [value, removed]))
  come.marks = marksOf(changes.filter(({ removed }) => !removed).map(({ value, added }) => [value, added]))
}

function marksOf(parts: [text: string, isChanged: boolean][]): Mark[] {
  const marks: Mark[] = []
  let at = 0
  for (const [text, isChanged] of parts) {
    if (isChanged) marks.push({ from: at, to: at + text.length })
    at += text.length
  }
  return marks
}
