/**
 * Hostile Markdown of a message as HTML for a file that someone shares. HTML in the source stays text. Links and images become text with
 * their target, so that nothing in the file leads anywhere or loads.
 */
import MarkdownIt from 'markdown-it'
import { escapedHtml } from './escaped-html.ts'

const md = new MarkdownIt({ html: false, linkify: false, breaks: true })
/** Any target is shown, because it is text. */
md.validateLink = () => true
type Token = ReturnType<typeof md.parse>[number]

const DIRECTED = new Set([
  'paragraph_open',
  'bullet_list_open',
  'ordered_list_open',
  'blockquote_open',
  'th_open',
  'td_open'
])
md.core.ruler.push('shared', ({ tokens }) => {
  for (const token of tokens) {
    // The file's policy allows no inline styles.
    token.attrs = token.attrs?.filter(([name]) => name !== 'style') ?? null
    if (DIRECTED.has(token.type)) token.attrSet('dir', 'auto')
    // The title of the conversation and the names of those who speak stand above.
    if (token.type === 'heading_open' || token.type === 'heading_close')
      token.tag = `h${Math.min(6, Number(token.tag.slice(1)) + 2)}`
  }
})

const codeBlock = (tokens: Token[], at: number) => `<pre>${escapedHtml(tokens[at]?.content ?? '', 'columns')}</pre>\n`
Object.assign(md.renderer.rules, {
  text: (tokens: Token[], at: number) => escapedHtml(tokens[at]?.content ?? '', 'prose'),
  code_inline: (tokens: Token[], at: number) => `<code>${escapedHtml(tokens[at]?.content ?? '', 'strict')}</code>`,
  code_block: codeBlock,
  fence: codeBlock,
  link_open: () => '',
  link_close: (tokens: Token[], at: number) => {
    let open = at
    while (open > 0 && tokens[open]?.type !== 'link_open') open--
    const words = tokens.slice(open + 1, at).map(({ content }) => content)
    const href = String(tokens[open]?.attrGet('href') ?? '')
    return words.join('') === href ? '' : ` (${escapedHtml(href, 'strict')})`
  },
  image: (tokens: Token[], at: number) => {
    const { content = '' } = tokens[at] ?? {}
    return `${escapedHtml(content, 'prose')} (${escapedHtml(String(tokens[at]?.attrGet('src') ?? ''), 'strict')})`
  },
  table_open: () => '<div class="table"><table>\n',
  table_close: () => '</table></div>\n'
})

export function messageHtml(markdown: string): string {
  return md.render(markdown.toWellFormed())
}
