import { describe, expect, it } from 'vitest'
import { growingBlocks, toBlocks } from './markdown.ts'

const html = (source: string) =>
  toBlocks(source)
    .map((block) => {
      if (block.kind === 'source') return `[source]${block.text}`
      return block.kind === 'html' ? block.html : `[${block.language}]${block.code}`
    })
    .join('')

describe('toBlocks', () => {
  // Checked: with `html: true`, the tag is in the page.
  it('leaves HTML as text', () => {
    expect(html('<script>x</script> <b onclick="x">hi</b>')).not.toMatch(/<(script|b)/)
    expect(html('<!-- x --><style>*{}</style>')).not.toMatch(/<(style|!--)/)
  })

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    '//host/x',
    '/api/login'
  ])('makes no link of %s', (target) => {
    expect(html(`[x](${target}) ![x](${target}) <${target}>`)).not.toContain('<a ')
  })

  it('shows where a link leads, and opens it apart', () => {
    expect(html('[my bank](https://evil.example/bank)')).toBe(
      '<p dir="auto"><a href="https://evil.example/bank" target="_blank" rel="noopener noreferrer nofollow">my bank</a><span class="link-target">(evil.example)</span></p>\n'
    )
    expect(html('https://example.org/a')).not.toContain('link-target')
    expect(html('[https://good.example](https://evil.example)')).toContain('(evil.example)')
  })

  // Checked: if it shows the beginning, the host looks like another one.
  it('shows the end of a long host, which says whose it is', () => {
    const host = `my.bank.example.${'a'.repeat(60)}.${'b'.repeat(60)}.evil.example`
    expect(html(`[x](https://${host}/)`)).toMatch(/\(…[ab.]+\.evil\.example\)/)
    expect(html(`[x](mailto:${'a'.repeat(100)}@evil.example?subject=${'my.bank.example'.repeat(9)})`)).toMatch(
      /\(…a+@evil\.example\)/
    )
  })

  it('makes a link of an image, so that nothing is loaded from elsewhere', () => {
    expect(html('![cat "><img src=x>](https://example.org/c.png)')).not.toContain('<img')
  })

  it('cannot be led out of an attribute', () => {
    expect(html('[x](https://e.org/"onmouseover="alert(1) "title")')).not.toMatch(/"\s*onmouseover="/)
  })

  it('gives code at the top a block of its own, and shows hidden characters everywhere', () => {
    expect(toBlocks('a\n\n```ts\nlet x\n```\n\nb').map(({ kind }) => kind)).toEqual(['html', 'code', 'html'])
    expect(html('a\u202eb `c\u2066d`')).toContain('<span class="hidden-char">U+202E</span>')
    expect(html('- x\n\n  ```\n  <b>\u202e\n  ```')).toMatch(/&lt;b&gt;<span class="hidden-char">U\+202E/)
  })

  it('keeps the blocks before the end as they are while text is added', () => {
    const first = toBlocks('# Title\n\n- one\n- two\n\nsome te')
    const second = toBlocks('# Title\n\n- one\n- two\n\nsome text and more')
    expect(second.slice(0, 2)).toEqual(first.slice(0, 2))
  })

  it.each([
    ['$x^2$', 'x^2'],
    ['\\(a\\)', 'a'],
    ['cost \\$5, math $a\\$b$', 'a\\$b']
  ])('finds the math in %s', (source, tex) => {
    expect(html(source)).toContain(`<span class="math" data-tex="${tex}">`)
  })

  it.each(['$$\na < b\n$$', '\\[\na < b\n\\]', '$$a < b$$', 'so\n$$\na < b\n$$', 'x $$a < b$$ y'])(
    'finds the display math in %j',
    (source) => {
      expect(html(source)).toContain('<span class="math math-display" data-tex="a &lt; b">')
    }
  )

  it.each(['$5 and $10', 'from $5-$10', 'a $ b $ c', '`$x$`', '$$', '$$\n\n$$', '$$a', `$${'x'.repeat(5000)}$`])(
    'leaves %.20j as text',
    (source) => {
      expect(html(source)).not.toContain('class="math')
    }
  )

  it('does not let math out of its attribute, and draws none with hidden characters', () => {
    expect(html('$"><img src=x>$')).toContain('data-tex="&quot;&gt;&lt;img src=x&gt;"')
    expect(html('$a\u202eb$')).toMatch(/<span class="math"><code>a<span class="hidden-char">U\+202E/)
  })

  it('makes boxes of task lists, and a region of a table', () => {
    expect(html('- [ ] one\n- [x] <b>two\n- [y] three')).toMatch(
      /<li class="task"><input type="checkbox" disabled aria-label="Not done"> one[\s\S]*disabled checked aria-label="Done"> &lt;b&gt;two[\s\S]*<li>\[y\] three/
    )
    expect(html('|a|b|\n|-|-|\n|1|2|')).toMatch(
      /<div class="table-scroll" role="region"[^>]*><table>[\s\S]*<\/table><\/div>/
    )
  })

  // Seen before: the alignment was an inline style, which the page's policy blocks.
  it('aligns the columns of a table with classes', () => {
    const table = html('|a|b|c|d|\n|:-|:-:|-:|-|\n|1|2|3|4|')
    expect(table).toMatch(
      /<td dir="auto" class="align-left">1<\/td>\s*<td dir="auto" class="align-center">2<\/td>\s*<td dir="auto" class="align-right">3<\/td>\s*<td dir="auto">4/
    )
    expect(table).not.toContain('style=')
  })

  it('leaves the direction of each paragraph to its first letter', () => {
    expect(html('hello\n\nשלום\n\n- x')).toMatch(/<p dir="auto">hello<\/p>\n<p dir="auto">שלום<\/p>\n<ul dir="auto">/)
  })
})

describe('growingBlocks', () => {
  const TEXT = [
    '# A title\nwith a line below\n===\n\nSome *text* and\nmore of it with $x$',
    '- one\n\n  a paragraph in it\n- two\n  ```\n  code\n\n  more\n  ```\n\n1. three',
    '```js\nlet x = 1\n\n\nlet y\n```\n> quoted\nlazily\n\n> again',
    '$$\na\n- b\n# c\n$$\n\n| a | b |\n|---|---|\n| 1 | 2 |\nafter\n\n    indented\n\n    code',
    '```mermaid\ngraph TD\n```\n\n---\r\n\r\nlast\rline'
  ].join('\n\n')

  it('gives at each length what parsing the whole text gives', () => {
    const grow = growingBlocks()
    for (let end = 0; end <= TEXT.length; end++) expect(grow(TEXT.slice(0, end))).toEqual(toBlocks(TEXT.slice(0, end)))
  })

  it('starts again when the text is another one', () => {
    const grow = growingBlocks()
    grow(TEXT)
    expect(grow('# Else\n\ntext')).toEqual(toBlocks('# Else\n\ntext'))
  })

  // Checked: if the whole text is parsed again, every block is a new object.
  it('parses no block again that is complete', () => {
    const grow = growingBlocks()
    const before = grow(`${TEXT}\n\nand so`)
    const after = grow(`${TEXT}\n\nand so on`)
    expect(after.length).toBeGreaterThan(10)
    after.forEach((block, at) => {
      if (at < after.length - 1) expect(block).toBe(before[at])
    })
  })
})
