import type { AnsiLines } from './ansi-lines.ts'

export interface Found {
  row: number
  from: number
  to: number
}

const MAX_FOUND = 10_000

/** Where a text stands in the rows, in capital or small letters. */
export function findText(lines: AnsiLines, wanted: string): { found: Found[]; isCut: boolean } {
  const found: Found[] = []
  const needle = wanted.toLowerCase()
  if (needle === '') return { found, isCut: false }
  for (let row = 0; row < lines.rows.length; row++) {
    const text = lines.textOf(row).toLowerCase()
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) {
      if (found.length === MAX_FOUND) return { found, isCut: true }
      found.push({ row, from: at, to: at + needle.length })
    }
  }
  return { found, isCut: false }
}
