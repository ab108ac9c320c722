/** Markdown as people know it: math, task lists, tables, right-to-left text, code to save, and diagrams. */
import { expect, it } from 'vitest'
import { PHONE } from '../../support/browser.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()

function answer(text: string): (session: FakeSession) => void {
  return (session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.append('agent:response', { turnId: 't', text })
    session.append('turn:end', { turnId: 't', reason: 'done' })
  }
}

const HOSTILE_MATH = [
  String.raw`$\href{javascript:alert(1)}{x}$`,
  String.raw`$\htmlStyle{position:fixed}{x}$`,
  String.raw`$\includegraphics{https://evil.example/x.png}$`,
  String.raw`$\def\a{\a\a}\a$`,
  String.raw`$\rule{1000em}{1000em}$`,
  String.raw`$\notacommand$`
].join('\n\n')

it('draws math with its own fonts; what it cannot draw stays as its source', async () => {
  const { me } = await now().arrive(
    answer(`Sum $\\sum_{i=1}^n i = \\frac{n(n+1)}{2}$ costs $5 or $10.\n\n$$\n\\sqrt{a^2 + b^2}\n$$\n\n${HOSTILE_MATH}`)
  )
  await me.page.locator('.math.is-drawn .katex').first().waitFor()
  await me.page.locator('.math-display.is-drawn .katex-display').waitFor()
  await expect.poll(() => me.page.locator('.math[title]').count()).toBe(2)
  await me.page.getByText('costs $5 or $10.').waitFor()
  await me.page.getByText('\\notacommand').waitFor()
  expect(await me.page.locator('.math a, .math img, .math [style*=fixed]').count()).toBe(0)
  await expect.poll(() => me.page.evaluate('document.fonts.check("12px KaTeX_Main")')).toBe(true)
  // Nothing is painted outside of its own place.
  expect((await me.page.locator('.math').nth(6).boundingBox())?.width).toBeLessThan(800)
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

it('draws nothing of a block that is still being written', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
  })
  session.live('agent:delta', { turnId: 't', text: 'First $a^2$ done.\n\nThen $b^2$ and' })
  await me.page.locator('.math.is-drawn').waitFor()
  await me.page.getByText('b^2').waitFor()
  expect(await me.page.locator('.math.is-drawn').count()).toBe(1)
  session.append('agent:response', { turnId: 't', text: 'First $a^2$ done.\n\nThen $b^2$ and more.' })
  await expect.poll(() => me.page.locator('.math.is-drawn').count()).toBe(2)
})

it('sets task lists, wide tables, right-to-left text and code that can be saved', async () => {
  const wide = Array.from({ length: 12 }, (_, at) => `column${at}`)
  const table = `|${wide.join('|')}|\n|${wide.map(() => '-').join('|')}|\n|${wide.join('|')}|`
  const { me } = await now().arrive(
    answer(
      `- [x] done\n- [ ] open\n\n${table}\n\nשלום עולם, hello.\n\nhello, שלום.\n\n\`\`\`python\nprint("hi")\n\`\`\``
    ),
    { viewport: PHONE, hasTouch: true, isMobile: true }
  )
  await me.page.getByRole('checkbox', { name: 'Done', exact: true }).waitFor()
  await me.page.getByRole('checkbox', { name: 'Not done' }).waitFor()
  const widths =
    '[...document.querySelectorAll(".table-scroll")].map((e) => [e.scrollWidth > e.clientWidth, e.clientWidth < innerWidth])'
  await expect.poll(() => me.page.evaluate(widths)).toEqual([[true, true]])
  await expect.poll(() => me.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  const directions = '[...document.querySelectorAll(".markdown p")].map((e) => getComputedStyle(e).direction)'
  await expect.poll(() => me.page.evaluate(directions)).toEqual(['rtl', 'ltr'])
  const buttons =
    '[...document.querySelectorAll(".markdown button")].map((e) => e.getBoundingClientRect().height >= 44)'
  await expect.poll(() => me.page.evaluate(buttons)).toEqual([true, true])
  const download = me.page.waitForEvent('download')
  await me.button('Save as code.py').click()
  expect((await download).suggestedFilename()).toBe('code.py')
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

// Seen before: every line of a block without a language ended with the sign that approval cards need.
it('shows the lines of a code block as they are', async () => {
  const { me } = await now().arrive(answer('```\nfirst line\nsecond line\n```'))
  await me.page.locator('.markdown pre', { hasText: 'second line' }).waitFor()
  expect(await me.page.locator('.markdown pre .line-end').count()).toBe(0)
})

const FENCE = '```'
const flow = (lines: string) => `${FENCE}mermaid\n${lines}\n${FENCE}`
const HOSTILE_DIAGRAM = `%%{init: {"securityLevel": "loose", "htmlLabels": true}}%%
flowchart LR
  A["<img src=https://evil.example/a.png onerror=alert(1)>"] --> B["<script>parent.hacked = 1</script>"]
  click A "javascript:alert(1)"`

it('draws diagrams apart from the page, as images; broken ones show their source and why', async () => {
  const { me } = await now().arrive(
    answer(
      [
        flow('flowchart TD\n  A[Start] --> B{Works?}\n  B -->|yes| C[Done]'),
        flow('sequenceDiagram\n  Alice->>Bob: Hello'),
        flow('flowchart TD\n  A -->'),
        flow('flowchart TD\n  A[a\u202eb]'),
        flow(HOSTILE_DIAGRAM)
      ].join('\n\n')
    ),
    { viewport: { width: 1200, height: 3000 } }
  )
  const images = me.page.getByRole('img', { name: /^Diagram: (flowchart|sequenceDiagram)/ })
  await expect.poll(() => images.count()).toBe(3)
  const widths = '[...document.querySelectorAll(".markdown img")].map((e) => e.complete && e.naturalWidth > 50)'
  await expect.poll(() => me.page.evaluate(widths)).not.toContain(false)
  await me.page.getByText('This diagram could not be drawn: Parse error').waitFor()
  await me.page.getByText('Not drawn, because its source contains hidden characters.').waitFor()
  await expect.poll(() => me.read(me.page.locator('.hidden-char'))).toContain('U+202E')
  // The frame is another origin, and nothing of a diagram is in the page.
  expect(await me.page.locator('iframe').getAttribute('sandbox')).toBe('allow-scripts')
  expect(await me.page.evaluate('document.querySelector("iframe").contentDocument')).toBeNull()
  expect(await me.page.evaluate('window.hacked')).toBeUndefined()
  expect(await me.page.locator('.markdown svg:not([aria-hidden])').count()).toBe(0)
  await me.button('Source').first().click()
  await me.page.getByText('A[Start] --> B{Works?}').waitFor()
  await me.button('Diagram').first().click()
  await me.button('Show the diagram on the whole screen').first().click()
  await me.page.getByRole('dialog', { name: 'Diagram: flowchart' }).getByRole('img').waitFor()
  await me.page.keyboard.press('Escape')
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

it('loads nothing for diagrams before the first one is complete', async () => {
  const { me, session } = await now().arrive(answer('no diagram'))
  expect(await me.page.locator('iframe').count()).toBe(0)
  session.append('user:message', { turnId: 'u', text: 'go' })
  session.live('agent:delta', { turnId: 'u', text: `${FENCE}mermaid\nflowchart TD\n  A --> B\n` })
  await me.page.getByText('A --> B').waitFor()
  expect(await me.page.locator('iframe').count()).toBe(0)
  session.append('agent:response', { turnId: 'u', text: flow('flowchart TD\n  A --> B') })
  await me.page.getByRole('img', { name: 'Diagram: flowchart' }).waitFor()
  expect(now().offences).toEqual([])
})

// Seen before: all 300,000 cells were laid out, and the page stood still for seconds.
it('lays out a bounded part of a hostile answer, says so, and stays usable', async () => {
  const table = `${'|a'.repeat(300)}|\n${'|-'.repeat(300)}|\n${`${'|1'.repeat(300)}|\n`.repeat(1000)}`
  const { me } = await now().arrive((session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    const math = `$${'\\frac{'.repeat(200)}x${'}{y}'.repeat(200)}$`
    session.append('agent:response', { turnId: 't', text: `# Head\n\n${math}\n\n${table}THE END` })
    session.append('turn:end', { turnId: 't', reason: 'done' })
  })
  await me.page.getByText('What follows is too much to be laid out').waitFor()
  await me.page.getByText('Not all of this is shown: the first 50,000').waitFor()
  expect(await me.page.evaluate('document.querySelectorAll(".markdown *").length')).toBeLessThan(25_000)
  expect(await me.page.locator('.math.is-drawn').count()).toBe(0)
  await me.composer.fill('still here')
  expect(now().offences).toEqual([])
})
