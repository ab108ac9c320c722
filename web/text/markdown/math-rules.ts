/**
 * Math between `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. The parser only finds it; it is drawn later, in the page. Sums of money stay
 * text: `$` begins no math before a space, and ends none after a space or before a digit.
 */
import type MarkdownIt from 'markdown-it'

type Parser = InstanceType<typeof MarkdownIt>
type InlineRule = Parameters<Parser['inline']['ruler']['before']>[2]
type BlockRule = Parameters<Parser['block']['ruler']['before']>[2]

/** A longer formula stays text: drawing it would take too long. */
const MAX_TEX_CHARS = 4000

/** Must come before `escape`, which would take `\(` for a bracket. */
export function addMath(md: Parser): void {
  md.inline.ruler.before('escape', 'math_inline', inlineMath)
  md.block.ruler.before('fence', 'math_block', blockMath, { alt: ['paragraph', 'blockquote', 'list'] })
}

const inlineMath: InlineRule = (state, silent) => {
  const found = mathAt(state.src, state.pos, state.posMax)
  if (!found) return false
  if (!silent) {
    const token = state.push('math_inline', 'span', 0)
    token.content = found.tex
    token.markup = found.isDisplay ? 'display' : ''
  }
  state.pos = found.end
  return true
}

interface Found {
  tex: string
  isDisplay: boolean
  end: number
}

function mathAt(text: string, at: number, max: number): Found | undefined {
  if (text[at] !== '$' && text[at] !== '\\') return undefined
  const opening = ['$$', '$', '\\(', '\\['].find((mark) => text.startsWith(mark, at))
  if (opening === undefined) return undefined
  const closing = { '\\(': '\\)', '\\[': '\\]' }[opening] ?? opening
  const from = at + opening.length
  const to = closingAt(text, closing, from, Math.min(max, from + MAX_TEX_CHARS))
  if (to < 0) return undefined
  const tex = text.slice(from, to)
  if (tex.trim() === '' || (opening === '$' && !isInlineMath(text, tex, to))) return undefined
  return { tex, isDisplay: opening === '$$' || opening === '\\[', end: to + closing.length }
}

/** Skips what is escaped: `\$` is a dollar inside math. */
function closingAt(text: string, closing: string, from: number, max: number): number {
  if (!text.slice(from, max).includes(closing)) return -1
  for (let at = from; at < max; at++) {
    if (text.startsWith(closing, at)) return at + closing.length <= max ? at : -1
    if (text[at] === '\\') at += 1
  }
  return -1
}

function isInlineMath(text: string, tex: string, to: number): boolean {
  return !/^\s|\s$|\n\n/.test(tex) && !/\d/.test(text[to + 1] ?? '')
}

type BlockState = Parameters<BlockRule>[0]

/** `$$` or `\[` on its own line, up to the line that ends with the closing mark. */
const blockMath: BlockRule = (state, startLine, endLine, silent) => {
  const start = (state.bMarks[startLine] ?? 0) + (state.tShift[startLine] ?? 0)
  const opening = ['$$', '\\['].find((mark) => state.src.startsWith(mark, start))
  if (opening === undefined || (state.sCount[startLine] ?? 0) - state.blkIndent >= 4) return false
  const closing = opening === '$$' ? '$$' : '\\]'
  const from = start + opening.length
  const isOneLine = endOf(state, startLine, closing) >= from
  const last = isOneLine ? startLine : nextEnd(state, startLine + 1, closing)
  if (last >= endLine || (state.bMarks[last] ?? 0) - from > MAX_TEX_CHARS) return false
  const lines = [state.src.slice(from, isOneLine ? endOf(state, last, closing) : state.eMarks[startLine])]
  for (let line = startLine + 1; line <= last; line++) {
    const text = state.src.slice(
      state.bMarks[line] ?? 0,
      line === last ? endOf(state, last, closing) : state.eMarks[line]
    )
    // A blank line ends a paragraph, and with it math that was never closed.
    if (line < last && text.trim() === '') return false
    lines.push(text)
  }
  const tex = lines.join('\n').trim()
  if (tex === '' || tex.length > MAX_TEX_CHARS || tex.includes(closing)) return false
  if (silent) return true
  state.line = last + 1
  const token = state.push('math_block', 'div', 0)
  token.content = tex
  token.block = true
  token.map = [startLine, last + 1]
  return true
}

/** Where the mark begins that ends the line; -1 if the line ends otherwise. */
function endOf({ src, bMarks, eMarks }: BlockState, line: number, closing: string): number {
  let end = eMarks[line] ?? 0
  while (end > (bMarks[line] ?? 0) && /\s/.test(src[end - 1] ?? '')) end--
  const at = end - closing.length
  return at >= (bMarks[line] ?? 0) && src.startsWith(closing, at) ? at : -1
}

/** The searches of one text, so that many openings don't each look through the whole rest. */
const searches = new WeakMap<object, Record<string, { from: number; at: number }>>()
/** The first line from `line` on that ends with the mark; the number of lines if none does. */
function nextEnd(state: BlockState, line: number, closing: string): number {
  const known = searches.get(state.env) ?? {}
  const last = known[closing]
  if (last && line >= last.from && line <= last.at) return last.at
  let at = line
  while (at < state.eMarks.length && endOf(state, at, closing) < 0) at++
  searches.set(state.env, { ...known, [closing]: { from: line, at } })
  return at
}
