import { reveal } from '../../../contract/hidden-characters.ts'
import { isWebAddress, targetOf } from '../link-target.ts'
import type { Row } from './ansi-lines.ts'
import type { Look } from './text-look.ts'

/** A part of a row's text that a search has found. */
export interface Hit {
  from: number
  to: number
  isCurrent: boolean
}

/** A piece of a row that the view draws as one element. */
export interface RowPiece {
  text: string
  look: Look
  hidden?: string | undefined
  href?: string | undefined
  /** Shown after a link whose text does not say where it leads. */
  target?: string | undefined
  hit?: 'hit' | 'current' | undefined
}

interface Link {
  from: number
  to: number
  href: string
  target: string | undefined
}

/** Brackets and quotes end an address. One with letters of other scripts, or with hidden characters, is no link. */
const ADDRESS = /https?:\/\/[^\s"'<>`{}|\\^[\]]+/gi
const MAX_LINKS = 50

/** `isRaw`: long blanks are named too. */
export function rowPieces(row: Row, hits: readonly Hit[] = [], isRaw = false): RowPiece[] {
  const text = row.map((run) => run.text).join('')
  const links = linksIn(row, text)
  let end = 0
  const ends = row.map((run) => (end += run.text.length))
  const borders = [...ends, ...[...links, ...hits].flatMap(({ from, to }) => [from, to])].sort((a, b) => a - b)
  const styleAt = (at: number, to: number): Omit<RowPiece, 'text'> => {
    const link = links.find(({ from, to: last }) => from <= at && at < last)
    const hit = hits.find((each) => each.from <= at && at < each.to)
    return {
      look: row[ends.findIndex((each) => at < each)]?.look ?? { className: '' },
      ...(link && { href: link.href, ...(to === link.to && { target: link.target }) }),
      ...(hit && { hit: hit.isCurrent ? 'current' : 'hit' })
    }
  }
  let from = 0
  return reveal(text, isRaw ? 'strict' : 'columns').flatMap((part): RowPiece[] => {
    const start = from
    from += part.text.length
    if (part.hidden) return [{ ...part, ...styleAt(start, from) }]
    const inside = [...new Set(borders.filter((each) => each > start && each < from))]
    return [start, ...inside].map((begin, at) => {
      const stop = inside[at] ?? from
      return { text: text.slice(begin, stop), ...styleAt(begin, stop) }
    })
  })
}

function linksIn(row: Row, text: string): Link[] {
  const links: Link[] = []
  let at = 0
  for (const { text: words, href } of row) {
    const last = links.at(-1)
    const from = at
    at += words.length
    if (href === undefined) continue
    if (last?.href === href && last.to === from) last.to = at
    else links.push({ from, to: at, href, target: undefined })
  }
  for (const link of links) if (text.slice(link.from, link.to) !== link.href) link.target = targetOf(link.href)
  for (const { 0: found, index } of text.matchAll(ADDRESS)) {
    if (links.length >= MAX_LINKS) break
    const href = found.replace(/[.,;:!?)]+$/, '')
    const [from, to] = [index, index + href.length]
    if (!isWebAddress(href) || links.some((link) => from < link.to && link.from < to)) continue
    // `https://my.bank@evil.example` leads to evil.example.
    links.push({ from, to, href, target: href.includes('@') ? targetOf(href) : undefined })
  }
  return links
}
