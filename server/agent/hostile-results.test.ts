import fc from 'fast-check'
import { expect, it } from 'vitest'
import { applyEvent, emptyTranscript } from '../../contract/transcript.ts'
import { transcriptMarkdown } from '../../contract/transcript-markdown.ts'
import { boundContent } from '../calls/bound-content.ts'
import { contentText } from './model-history.ts'

const HUGE = 'x'.repeat(9_000_000)
const odd = fc.oneof(
  fc.constantFrom<unknown>(null, 0, '', 'text', [], {}, { toString: 1, valueOf: 1 }, { toString: null }),
  fc.json().map((text) => JSON.parse(text))
)
const part = fc.oneof(
  odd,
  fc.record({ type: odd, text: odd, file: odd, data: odd }, { requiredKeys: [] }),
  fc.record({
    type: fc.constantFrom('image', 'text', 'resource'),
    file: fc.record({ id: odd, mediaType: odd, size: odd })
  })
)

// Checked: with String() around the type of a part, one such result ends every later turn of its session.
it('whatever parts a server puts into a result, the log, the model and an export get a text for each', () => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
      const content: unknown[] = JSON.parse(JSON.stringify(parts))
      expect(typeof contentText(boundContent(content))).toBe('string')
      const transcript = emptyTranscript()
      const card = { turnId: 't1', server: 's', definition: 'd', hash: 'h', queuePosition: 1, totalInQueue: 1 }
      const add = (type: string, data: object, seq: number) =>
        applyEvent(transcript, { type, data, seq, at: seq } as Parameters<typeof applyEvent>[1])
      add('tool:approval_required', { ...card, callId: 'c', name: 'n', args: {} }, 1)
      add('tool:result', { callId: 'c', isError: false, content }, 2)
      expect(transcriptMarkdown('title', transcript)).toContain('s/n')
    }),
    { numRuns: 300 }
  )
})

it('a part that is too large for the log and has no type is named', () => {
  const type = { toString: 1 }
  const [left] = boundContent([{ type, data: HUGE }])
  expect(left).toEqual({ type: 'text', text: expect.stringMatching(/^\[unknown of \d+ bytes left out\]$/) })
})
