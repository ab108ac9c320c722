import { expect, it } from 'vitest'
import type { SessionEvent } from '../../../contract/events.ts'
import { applyEvent, emptyTranscript } from '../../../contract/transcript.ts'
import { transcriptHtml } from './transcript-html.ts'

function shared(...answers: string[]): string {
  const transcript = emptyTranscript()
  const events = [
    ['user:message', { turnId: 't', text: 'Is **this** plain?' }],
    ...answers.map((text) => ['agent:response', { turnId: 't', text }] as const)
  ] as const
  for (const [type, data] of events)
    applyEvent(transcript, { type, data, seq: transcript.seq + 1, at: 1 } as SessionEvent)
  return transcriptHtml('Title', transcript).replace(/^[\s\S]*<main>/, '')
}

it('shows the answers of the model as they were meant, and the words of the person as they were typed', () => {
  const html = shared(
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
])('lets nothing in an answer run, load or lead anywhere: %j', (text) => {
  const html = shared(text)
  expect(html).not.toMatch(/<(script|img|link|iframe|a|b|style)\b|\u202e/i)
  expect(html).not.toMatch(/<[^>]*\s(on\w+|href|src|style)=/i)
})

it('shows where a link leads', () => {
  const html = shared('[the docs](https://example.com/docs) and ![a cat](https://example.com/cat.png)')
  expect(html).toContain('the docs (https://example.com/docs) and a cat (https://example.com/cat.png)')
})

it('leaves what is too long to be parsed as it was written', () => {
  const html = shared(`**${'x'.repeat(2_000_000)}**`, '**short**')
  expect(html).toContain('x**</div>')
  expect(html).toContain('**short**')
})
