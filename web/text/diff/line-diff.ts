/** One row of a comparison, line by line. */
export interface DiffRow {
  kind: 'same' | 'added' | 'removed' | 'gap'
  text: string
  before?: number | undefined
  after?: number | undefined
}

const TIMEOUT_MS = 150
/** Longer lines continue in the next row. */
const ROW_CHARS = 2000

export async function lineDiff(before: string, after: string): Promise<DiffRow[]> {
  const { structuredPatch } = await import('diff')
  const patch = structuredPatch('', '', before, after, '', '', { context: 3, timeout: TIMEOUT_MS })
  // The comparison took too long: show all old lines as removed and all new ones as added.
  if (!patch) return [...lines(before).map(removed), ...lines(after).map(added)].flatMap(splitLong)
  const rows = patch.hunks.flatMap((hunk) => {
    const rows: DiffRow[] = [{ kind: 'gap', text: `Line ${hunk.newStart}` }]
    let oldLine = hunk.oldStart
    let newLine = hunk.newStart
    for (const line of hunk.lines) {
      const text = line.slice(1)
      if (line.startsWith('+')) rows.push({ kind: 'added', text, after: newLine++ })
      else if (line.startsWith('-')) rows.push({ kind: 'removed', text, before: oldLine++ })
      else if (line.startsWith('\\')) rows.push({ kind: 'gap', text: 'No line break at the end of the file' })
      else rows.push({ kind: 'same', text, before: oldLine++, after: newLine++ })
    }
    return rows
  })
  return rows.flatMap(splitLong)
}

export function newFileRows(text: string): DiffRow[] {
  return lines(text).map(added).flatMap(splitLong)
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
