import { expect, it } from 'vitest'
import { growingBlocks, toBlocks } from './markdown.ts'

const times = (count: number, text: string) => text.repeat(count)
const elements = (source: string) =>
  toBlocks(source).reduce(
    (sum, block) => sum + (block.kind === 'html' ? (block.html.match(/<[a-z]/g)?.length ?? 0) : 0),
    0
  )
const rest = (source: string) => {
  const last = toBlocks(source).at(-1)
  return last?.kind === 'source' ? last.text : ''
}
const table = `${times(300, '|a')}|\n${times(300, '|-')}|\n${times(1000, `${times(300, '|1')}|\n`)}`

// Seen before: a table of 300,000 cells, 150,000 formulas and 250,000 paragraphs were all laid out, which stopped the page for 5 to 9 s.
it.each([
  ['a huge table', table],
  ['many formulas', times(150_000, '$x$ ')],
  ['many paragraphs', times(200_000, 'a\n\n')],
  ['hidden characters', times(100_000, '\u200b a')],
  ['lists in lists', times(90, '- ').concat('x\n').repeat(3000)],
  ['quotes in quotes', times(90, '> ').concat('x\n').repeat(3000)]
])('lays out a bounded part of %s, and shows the rest as it was written', (_what, text) => {
  const source = `# Head\n\n${text}`
  expect(elements(source)).toBeLessThanOrEqual(20_000)
  expect(elements(source)).toBeGreaterThan(0)
  expect(source.endsWith(rest(source))).toBe(true)
  expect(rest(source).length).toBeGreaterThan(10_000)
})

it('lays out a long answer of usual Markdown whole', () => {
  const part = `## Head\n\nSome *words* with \`code\` and $x^2$.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\`\`\`js\nlet x = 1\n\`\`\`\n\n${times(40, 'More words. ')}\n\n`
  expect(rest(times(200, part))).toBe('')
})

it('loses no text of a message that is too long, also while it grows', () => {
  const source = times(30_000, 'word word\n\n')
  const grow = growingBlocks()
  for (const length of [1000, 150_000, 250_000, source.length]) {
    const shown = grow(source.slice(0, length))
    const text = shown
      .map((block) => (block.kind === 'source' ? block.text : block.kind === 'html' ? block.html : ''))
      .join('')
    expect(text.match(/word word/g)?.length).toBe(source.slice(0, length).match(/word word/g)?.length)
  }
})

it('shows lists and quotes that are deeper than the parser goes, instead of leaving them out', () => {
  expect(rest(`${times(120, '> ')}the end`)).toContain('the end')
})

it('draws no formula of groups that are deep in each other', () => {
  const deep = `$${times(100, '\\frac{')}x${times(100, '}{y}')}$`
  const [block] = toBlocks(deep)
  expect(block?.kind === 'html' && block.html.includes('data-tex')).toBe(false)
  const [usual] = toBlocks('$\\frac{\\sqrt{\\frac{a}{b}}}{c}$')
  expect(usual?.kind === 'html' && usual.html.includes('data-tex')).toBe(true)
})
