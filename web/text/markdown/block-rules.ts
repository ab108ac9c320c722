/** Task lists, tables that scroll, and the direction of each paragraph. */
import type MarkdownIt from 'markdown-it'

type Parser = InstanceType<typeof MarkdownIt>
type Token = ReturnType<Parser['parse']>[number]

/** The first letter of each of these says in which direction it is read. */
const DIRECTED = new Set([
  ...['paragraph_open', 'heading_open', 'bullet_list_open', 'ordered_list_open', 'blockquote_open'],
  ...['th_open', 'td_open']
])

export function addBlockRules(md: Parser): void {
  md.core.ruler.push('directions', ({ tokens }) => {
    for (const token of tokens) if (DIRECTED.has(token.type)) token.attrSet('dir', 'auto')
  })
  // The page's policy allows no inline styles.
  md.core.ruler.push('alignment', ({ tokens }) => {
    for (const token of tokens) {
      const [, side] = /^text-align:(left|center|right)$/.exec(String(token.attrGet('style') ?? '')) ?? []
      if (side === undefined) continue
      token.attrs = token.attrs?.filter(([name]) => name !== 'style') ?? null
      token.attrSet('class', `align-${side}`)
    }
  })
  md.core.ruler.push('task_lists', ({ tokens }) => {
    for (const [at, token] of tokens.entries()) if (token.type === 'inline') markTask(tokens, at)
  })
  // A region of its own, so that it can be scrolled by keyboard.
  md.renderer.rules.table_open = () =>
    '<div class="table-scroll" role="region" aria-label="Table" tabindex="0"><table>\n'
  md.renderer.rules.table_close = () => '</table></div>\n'
  md.renderer.rules.task_box = (tokens, at) => {
    const isDone = tokens[at]?.markup === 'x'
    return `<input type="checkbox" disabled${isDone ? ' checked' : ''} aria-label="${isDone ? 'Done' : 'Not done'}"> `
  }
}

function markTask(tokens: Token[], at: number): void {
  const [item, paragraph, inline] = [tokens[at - 2], tokens[at - 1], tokens[at]]
  const first = inline?.children?.[0]
  if (item?.type !== 'list_item_open' || paragraph?.type !== 'paragraph_open' || first?.type !== 'text') return
  const mark = /^\[([ xX])\]\s+/.exec(first.content)
  if (!mark || !inline?.children) return
  first.content = first.content.slice(mark[0].length)
  // Only a token of the parser has all the methods of one.
  const box: Token = Object.assign(Object.create(Object.getPrototypeOf(first)), first)
  Object.assign(box, { type: 'task_box', content: '', markup: mark[1] === ' ' ? '' : 'x' })
  inline.children.unshift(box)
  item.attrSet('class', 'task')
}
