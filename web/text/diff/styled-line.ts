import { reveal } from '../../../contract/hidden-characters.ts'
import { wordOrder } from '../word-order.ts'
import type { Mark } from './diff-row.ts'

/** A piece of a line in the colour of its syntax. */
export interface ColourRun {
  length: number
  className: string
}

export interface LinePiece {
  text: string
  className: string
  isMarked: boolean
  /** The name of a character that would not be seen. */
  hidden?: string | undefined
  isRtl?: boolean
  isForced?: boolean | undefined
}

/** More elements in one line would slow the page down. */
const MAX_RUNS = 200

/**
 * Splits a line of code at its colours and marks. Hidden characters are looked for in the whole line first, so that no border
 * between colours can hide a part of them.
 */
export function styledLine(text: string, colours: readonly ColourRun[] = [], marks: readonly Mark[] = []): LinePiece[] {
  const runs = colours.length <= MAX_RUNS ? colours : []
  const borders = new Set(marks.length <= MAX_RUNS ? marks.flatMap(({ from, to }) => [from, to]) : [])
  let end = 0
  const ends = runs.map(({ length }) => (end += length))
  for (const each of ends) borders.add(each)
  const sorted = [...borders].sort((a, b) => a - b)
  const styleAt = (at: number) => ({
    className: runs[ends.findIndex((each) => at < each)]?.className ?? '',
    isMarked: marks.some(({ from, to }) => from <= at && at < to)
  })
  let from = 0
  return reveal(text).flatMap((part): LinePiece[] => {
    const start = from
    from += part.text.length
    if (part.hidden) return [{ ...part, ...styleAt(start) }]
    const inside = sorted.filter((each) => each > start && each < from)
    return [start, ...inside].flatMap((begin, at) => {
      const piece = text.slice(begin, inside[at] ?? from)
      return wordOrder(piece).map((word) => ({ ...word, ...styleAt(begin) }))
    })
  })
}
