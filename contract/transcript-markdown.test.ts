import { expect, it } from 'vitest'
import type { SessionEvent } from './events.ts'
import { applyEvent, emptyTranscript } from './transcript.ts'
import { transcriptMarkdown } from './transcript-markdown.ts'

it('takes output with any number of backticks, and none of it breaks out', () => {
  const text = `${'`\n'.repeat(300_000)}\`\`\`\`\nend`
  const call = { callId: 'c', turnId: 't1', server: 's', name: 'n', args: {} }
  const transcript = emptyTranscript()
  for (const [type, data] of [
    ['user:message', { turnId: 't1', text: 'go' }],
    ['tool:approval_required', call],
    ['tool:result', { callId: 'c', isError: false, content: [{ type: 'text', text }] }]
  ] as const)
    applyEvent(transcript, { type, data, seq: 1, at: 1 } as SessionEvent)
  expect(transcriptMarkdown('Title', transcript)).toMatch(/\n`````\n`\n.*\nend\n`````\n$/s)
})
