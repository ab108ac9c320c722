/**
 * Converts hostile Markdown to blocks of safe HTML. HTML in the source stays text. Links lead to http, https and mailto only and show
 * their target. Images become links, so that the page sends no request to another host.
 */
import MarkdownIt from 'markdown-it'
import { hasHidden, reveal, type TextKind } from '../../../contract/hidden-characters.ts'
import { targetOf } from '../link-target.ts'
import { addBlockRules } from './block-rules.ts'
import { type Cost, codeCost, firstBeyond, htmlCost, isDeepTex, parsedLength } from './markdown-limits.ts'
import { addMath } from './math-rules.ts'

export type MarkdownBlock =
  | { kind: 'html'; html: string }
  | { kind: 'code'; code: string; language: string }
  | { kind: 'source'; text: string }

const md = new MarkdownIt({ html: false, linkify: true, breaks: true })
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false })
md.validateLink = (url) => /^(?:https?:\/\/|mailto:)/i.test(url.trim())
addMath(md)
addBlockRules(md)
type Token = ReturnType<typeof md.parse>[number]
const { escapeHtml } = md.utils

function visible(text: string, kind: TextKind): string {
  return reveal(text, kind)
    .map((part) => (part.hidden ? `<span class="hidden-char">${part.hidden}</span>` : escapeHtml(part.text)))
    .join('')
}

const linkAttributes = 'target="_blank" rel="noopener noreferrer nofollow"'

md.renderer.rules.text = (tokens, at) => visible(tokens[at]?.content ?? '', 'prose')
md.renderer.rules.code_inline = (tokens, at) => `<code>${visible(tokens[at]?.content ?? '', 'strict')}</code>`
md.renderer.rules.code_block = (tokens, at) =>
  `<pre tabindex="0"><code>${visible(tokens[at]?.content ?? '', 'strict')}</code></pre>`
md.renderer.rules.fence = md.renderer.rules.code_block
md.renderer.rules.math_inline = (tokens, at) => math(tokens[at]?.content ?? '', tokens[at]?.markup === 'display')
md.renderer.rules.math_block = (tokens, at) => `<p>${math(tokens[at]?.content ?? '', true)}</p>\n`
md.renderer.rules.link_open = (tokens, at) => `<a href="${escapeHtml(hrefOf(tokens[at]))}" ${linkAttributes}>`
md.renderer.rules.link_close = (tokens, at) => `</a>${target(tokens, at)}`
md.renderer.rules.image = (tokens, at) => {
  const source = String(tokens[at]?.attrGet('src') ?? '')
  const label = tokens[at]?.content || 'image'
  return `<a href="${escapeHtml(source)}" ${linkAttributes}>${visible(label, 'prose')}</a>${shownTarget(source)}`
}

/** The source, until draw-math.ts replaces it. Math with hidden characters stays source, so that they are seen; so does very deep math. */
function math(tex: string, isDisplay: boolean): string {
  const source = hasHidden(tex) || isDeepTex(tex) ? '' : ` data-tex="${escapeHtml(tex)}"`
  return `<span class="math${isDisplay ? ' math-display' : ''}"${source}><code>${visible(tex, 'strict')}</code></span>`
}

const hrefOf = (token: Token | undefined) => String(token?.attrGet('href') ?? '')

/** The target of a link, unless its text is the same address. */
function target(tokens: Token[], close: number): string {
  let open = close
  while (open > 0 && tokens[open]?.type !== 'link_open') open--
  const href = hrefOf(tokens[open])
  const words = tokens.slice(open + 1, close).map(({ content }) => content)
  return words.join('') === href ? '' : shownTarget(href)
}

function shownTarget(href: string): string {
  return `<span class="link-target">(${visible(targetOf(href), 'strict')})</span>`
}

interface ParsedBlock {
  block: MarkdownBlock
  /** Where it begins. */
  line: number
  cost: Cost
}

/** Returns blocks, so that text that is streamed redraws only the last one. */
export function toBlocks(source: string): MarkdownBlock[] {
  const head = source.slice(0, parsedLength(source))
  return withinLimits(parsed(head), head, source)
}

function parsed(source: string): ParsedBlock[] {
  const env = {}
  const tokens = md.parse(source, env)
  const blocks: ParsedBlock[] = []
  let from = 0
  tokens.forEach((token, at) => {
    if (token.level !== 0 || token.nesting === 1) return
    const line = tokens[from]?.map?.[0] ?? 0
    const inside = tokens.slice(from, at + 1)
    const depth = inside.reduce((most, { level }) => Math.max(most, level), 0)
    if (token.type === 'fence') {
      const language = token.info.trim().split(/\s+/)[0] ?? ''
      blocks.push({
        block: { kind: 'code', code: token.content, language },
        line,
        cost: codeCost(token.content, language)
      })
    } else {
      const html = md.renderer.render(inside, md.options, env)
      blocks.push({ block: { kind: 'html', html }, line, cost: htmlCost(html, depth) })
    }
    from = at + 1
  })
  return blocks
}

/** From the first block that goes beyond what a page can lay out at once, the rest is shown as it was written. */
function withinLimits(blocks: readonly ParsedBlock[], head: string, source: string): MarkdownBlock[] {
  const cut = firstBeyond(blocks.map(({ cost }) => cost))
  const shown = blocks.slice(0, cut).map(({ block }) => block)
  const from = cut < blocks.length ? (lineStarts(head)[blocks[cut]?.line ?? 0] ?? 0) : head.length
  const rest = source.slice(from)
  return rest === '' ? shown : [...shown, { kind: 'source', text: rest }]
}

/**
 * The same for one text that grows: blocks that are complete are not parsed again. What is at the end can still change what comes before
 * it: a link's target may follow later. So parse the whole text once it is complete.
 */
export function growingBlocks(): (source: string) => MarkdownBlock[] {
  let done = ''
  let complete: ParsedBlock[] = []
  return (source) => {
    if (!source.startsWith(done)) {
      done = ''
      complete = []
    }
    const head = source.slice(0, parsedLength(source))
    const tail = head.slice(done.length)
    const linesDone = lineStarts(done).length - 1
    const blocks = parsed(tail)
    const all = [...complete, ...blocks.map((each) => ({ ...each, line: each.line + linesDone }))]
    const starts = lineStarts(tail)
    // Nothing reaches over a blank line, except from inside the last block.
    const isBlank = (line: number) => tail.slice(starts[line], starts[line + 1]).trim() === ''
    const cut = blocks.findLastIndex(({ line }) => line > 0 && isBlank(line - 1))
    if (cut > 0) {
      done += tail.slice(0, starts[blocks[cut]?.line ?? 0])
      complete = all.slice(0, complete.length + cut)
    }
    return withinLimits(all, head, source)
  }
}

function lineStarts(text: string): number[] {
  return [0, ...[...text.matchAll(/\r\n?|\n/g)].map(({ 0: end, index }) => index + end.length)]
}
