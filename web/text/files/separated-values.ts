/** A table of a CSV or TSV file, as far as it is shown. */
export interface ValueTable {
  rows: string[][]
  /** More rows, columns or characters follow than are here. */
  isCut: boolean
}

const MAX_ROWS = 500
const MAX_COLUMNS = 50
const MAX_CELL_CHARS = 1000

/** The first line decides between commas, semicolons and tabs. */
export function separatorOf(text: string): string {
  const line = text.slice(0, text.search(/[\r\n]|$/)).replace(/"[^"]*"/g, '')
  const counts = [',', ';', '\t'].map((mark) => ({ mark, count: line.split(mark).length }))
  return counts.toSorted((a, b) => b.count - a.count)[0]?.mark ?? ','
}

/** Quotes may contain separators, line ends and doubled quotes. */
export function parseValues(text: string, separator: string): ValueTable {
  const rows: string[][] = []
  let row: string[] = []
  let isCut = false
  const pattern = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n][^${separator}\\r\\n]*|))(${separator}|\\r\\n|\\n|\\r|$)`,
    'gy'
  )
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const [, quoted, plain = '', end] = match
    const cell = quoted === undefined ? plain : quoted.replaceAll('""', '"')
    if (row.length < MAX_COLUMNS) row.push(cell.length > MAX_CELL_CHARS ? `${cell.slice(0, MAX_CELL_CHARS)}…` : cell)
    else isCut = true
    if (end === separator) continue
    if (row.length > 1 || row[0] !== '') rows.push(row)
    row = []
    if (end === '' || pattern.lastIndex >= text.length) return { rows, isCut }
    if (rows.length === MAX_ROWS) return { rows, isCut: true }
  }
  // A quote that never ends, or one in the middle of a value.
  return { rows, isCut: true }
}
