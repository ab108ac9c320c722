import { expect, it } from 'vitest'
import type { SessionEvent } from '../../contract/events.ts'
import { applyEvent, emptyTranscript, type Transcript } from '../../contract/transcript.ts'
import { shownTranscript } from './shown-transcript.ts'

function conversation(calls: number, output: string): Transcript {
  const transcript = emptyTranscript()
  let seq = 0
  const add = (type: SessionEvent['type'], data: object) =>
    applyEvent(transcript, { type, data, seq: ++seq, at: seq } as SessionEvent)
  add('user:message', { turnId: 't1', text: 'go' })
  for (let n = 0; n < calls; n++) {
    const callId = `c${n}`
    const args = { path: `f${n}`, content: output }
    add('tool:approval_required', { callId, turnId: 't1', server: 'workspace', name: 'write_file', args })
    add('tool:approval_resolved', { callId, approved: true, by: 'human' })
    add('tool:result', { callId, isError: false, content: [{ type: 'text', text: output }] })
  }
  return transcript
}

it('sends a conversation of ordinary size as it is', () => {
  const transcript = conversation(100, 'x'.repeat(10_000))
  expect(shownTranscript(transcript)).toBe(transcript)
})

it('of a conversation of hundreds of megabytes sends the newest calls whole, and of the others the beginning', () => {
  const output = `begins so ${'x'.repeat(500_000)}`
  const transcript = conversation(500, output)
  const shown = shownTranscript(transcript)
  expect(JSON.stringify(shown).length).toBeLessThan(10 * 1024 * 1024)
  expect(shown.entries).toBe(transcript.entries)
  expect(shown.calls.c499).toBe(transcript.calls.c499)
  expect(shown.calls.c0).toMatchObject({ args: { path: 'f0' }, decision: { approved: true }, server: 'workspace' })
  expect(JSON.stringify(shown.calls.c0?.result)).toContain('begins so')
  // The conversation itself is as it was: the model and the export go on with it.
  expect(transcript.calls.c0?.result?.content).toEqual([{ type: 'text', text: output }])
})

it('leaves a call alone that is not decided: a human must see all of it', () => {
  const transcript = conversation(40, 'x'.repeat(500_000))
  delete transcript.calls.c0?.decision
  delete transcript.calls.c0?.result
  expect(shownTranscript(transcript).calls.c0).toBe(transcript.calls.c0)
})
