import { expect, it } from 'vitest'
import type { SessionEvent } from '../../../contract/events.ts'
import { applyEvent, emptyTranscript } from '../../../contract/transcript.ts'
import { transcriptHtml } from './transcript-html.ts'

async function shared(...answers: string[]): Promise<string> {
  const transcript = emptyTranscript()
  const events = [
    ['user:message', { turnId: 't', text: 'Is **this** plain?' }],
    ...answers.map((text) => ['agent:response', { turnId: 't', text }] as const)
  ] as const
  for (const [type, data] of events)
    applyEvent(transcript, { type, data, seq: transcript.seq + 1, at: 1 } as SessionEvent)
  return (await transcriptHtml('Title', transcript)).replace(/^[\s\S]*<main>/, '')
}

it('shows the answers of the model as they were meant, and the words of the person as they were typed', async () => {
  const html = await shared(
    '# Head\n\n**bold** and `a < b`\n\n- one\n- two\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\n\n```ts\nif (a < b) go()\n```'
  )
  expect(html).toContain('<h3>Head</h3>')
  expect(html).toContain('<strong>bold</strong> and <code>a &lt; b</code>')
  expect(html).toContain('<li>one</li>')
  expect(html).toContain('<td dir="auto">1</td>')
  expect(html).toContain('<pre>if (a &lt; b) go()\n</pre>')
  expect(html).toContain('Is **this** plain?')
  expect(html).not.toContain('style=')
})

it.each([
  '<script>alert(1)</script><img src=x onerror=alert(1)>',
  '[a](javascript:alert(1) "onclick=x")',
  '![a" onerror="x](https://evil.example/x.png)',
  '<https://evil.example/> and https://evil.example/',
  '```"><script>alert(1)</script>\n</pre><script>alert(1)</script>\n```',
  '[x]: javascript:alert(1)\n[x]',
  '`</code><script>alert(1)</script>`',
  '| <b onclick=x> | [a](data:text/html,x) |\n|--|--|\n| \u202e | &lt;script&gt; |'
])('lets nothing in an answer run, load or lead anywhere: %j', async (text) => {
  const html = await shared(text)
  expect(html).not.toMatch(/<(script|img|link|iframe|a|b|style)\b|\u202e/i)
  expect(html).not.toMatch(/<[^>]*\s(on\w+|href|src|style)=/i)
})

it('shows where a link leads', async () => {
  const html = await shared('[the docs](https://example.com/docs) and ![a cat](https://example.com/cat.png)')
  expect(html).toContain('the docs (https://example.com/docs) and a cat (https://example.com/cat.png)')
})

it('leaves what is too long to be parsed as it was written', async () => {
  const long = `**${'x'.repeat(50_000)}**`
  const html = await shared(long, '**short**', ...Array.from({ length: 12 }, () => `**${'y'.repeat(39_000)}**`))
  expect(html).toContain('x**</div>')
  expect(html).toContain('<strong>short</strong>')
  expect(html).toContain('y</strong>')
  expect(html).toContain('y**</div>')
})

it('lets other work go on between two messages', async () => {
  let turns = 0
  let isDone = false
  const others = () => {
    turns++
    if (!isDone) setImmediate(others)
  }
  setImmediate(others)
  await shared(...Array.from({ length: 10 }, () => '!['.repeat(15_000)))
  isDone = true
  expect(turns).toBeGreaterThanOrEqual(10)
})
