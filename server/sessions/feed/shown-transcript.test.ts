import { expect, it } from 'vitest'
import type { SessionEvent } from '../../../contract/events.ts'
import { PROGRAMS } from '../../../contract/own-sources.ts'
import { RUN_CODE } from '../../../contract/programs.ts'
import { applyEvent, emptyTranscript, pendingCalls, type Transcript } from '../../../contract/transcript.ts'
import { olderEntries, shownEvent, shownTranscript } from './shown-transcript.ts'

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

/** A program as the last entry, whose second call waits. */
function withProgram(transcript: Transcript, args: object): Transcript {
  const add = (type: SessionEvent['type'], data: object) =>
    applyEvent(transcript, { type, data, seq: transcript.seq + 1, at: transcript.seq + 1 } as SessionEvent)
  add('tool:approval_required', { callId: 'prog', turnId: 't1', server: PROGRAMS, name: RUN_CODE, args })
  add('tool:approval_resolved', { callId: 'prog', approved: true, by: 'rule' })
  add('tool:started', { callId: 'prog' })
  for (const n of [1, 2]) {
    const program = { callId: 'prog', n }
    add('tool:approval_required', { callId: `inner${n}`, turnId: 't1', server: 'workspace', name: 'x', args, program })
  }
  add('tool:approval_resolved', { callId: 'inner1', approved: true, by: 'human' })
  add('tool:result', { callId: 'inner1', isError: false, content: [] })
  return transcript
}

it('sends the calls of a program with it, in the newest part and in older ones', () => {
  const waiting = withProgram(conversation(500, 'x'.repeat(3000)), {})
  const { transcript: shown, olderBefore } = shownTranscript(waiting)
  expect(olderBefore).toBeGreaterThan(1)
  expect(pendingCalls(shown).map(({ callId }) => callId)).toEqual(['inner2'])
  expect(shown.calls.inner1).toEqual(waiting.calls.inner1)
  expect(Object.keys(olderEntries(waiting, waiting.seq + 1).calls)).toEqual(
    expect.arrayContaining(['prog', 'inner1', 'inner2'])
  )
})

it('counts the calls of a program towards the size of a page', () => {
  const transcript = emptyTranscript()
  applyEvent(transcript, { type: 'user:message', data: { turnId: 't1', text: 'go' }, seq: 1, at: 1 } as SessionEvent)
  withProgram(transcript, { content: 'x'.repeat(100_000) })
  expect(shownTranscript(transcript).olderBefore).toBe(2)
})

it('sends a conversation of ordinary size as it is', () => {
  const transcript = conversation(20, 'x'.repeat(1000))
  expect(shownTranscript(transcript)).toEqual({ transcript })
})

it('sends the newest part of a long conversation, and all of the rest page by page', () => {
  const transcript = conversation(500, `begins so ${'x'.repeat(3000)}`)
  const { transcript: shown, olderBefore } = shownTranscript(transcript)
  expect(JSON.stringify(shown).length).toBeLessThan(256 * 1024)
  expect(shown).toMatchObject({ seq: transcript.seq, turnId: 't1', turns: 1 })
  const entries = [...shown.entries]
  const calls = { ...shown.calls }
  for (let before: number | null = olderBefore ?? null; before !== null; ) {
    const page = olderEntries(transcript, before)
    expect(JSON.stringify(page).length).toBeLessThan(256 * 1024)
    entries.unshift(...page.entries)
    Object.assign(calls, page.calls)
    before = page.olderBefore
  }
  expect(entries).toEqual(transcript.entries)
  expect(calls).toEqual(transcript.calls)
})

// Checked: without the weight of previews, this snapshot has more than 100 MB.
it('bounds what was shown of forks too, also if it was discarded', () => {
  const transcript = conversation(60, 'short')
  const content = [{ type: 'text', text: 'x'.repeat(1_000_000) }]
  const changes = { changeId: 'c', hash: 'h', total: 0, files: [] }
  for (const [at, call] of Object.values(transcript.calls).entries()) {
    call.preview = { changes, hash: 'h', result: { isError: false, content }, at: 1 }
    if (at % 2 === 0) Object.assign(call, { decision: { approved: false, by: 'human', at: 1 }, result: undefined })
    else if (call.result) call.result.content = content
  }
  expect(JSON.stringify(shownTranscript(transcript).transcript).length).toBeLessThan(4_000_000)
})

it('sends a result of ordinary size whole, and an open call with all that follows', () => {
  const large = conversation(3, 'x'.repeat(700_000))
  expect(shownTranscript(large).transcript.calls.c2).toBe(large.calls.c2)
  const open = conversation(40, 'x'.repeat(500_000))
  delete open.calls.c1?.decision
  delete open.calls.c1?.result
  const { transcript: shown } = shownTranscript(open)
  expect(shown.calls.c1).toBe(open.calls.c1)
  expect(shown.calls.c39).toBe(open.calls.c39)
  expect(JSON.stringify(shown).length).toBeLessThan(10 * 1024 * 1024)
  // The conversation itself is as it was: the model and the export go on with it.
  expect(JSON.stringify(open.calls.c2?.result).length).toBeGreaterThan(500_000)
})

it('sends the beginning of a very large call that has run, live and later, and says so; a call that waits is whole', () => {
  const output = `begins so ${'x'.repeat(3_000_000)}`
  const transcript = conversation(2, output)
  delete transcript.calls.c0?.result
  delete transcript.calls.c0?.decision
  const { transcript: shown } = shownTranscript(transcript)
  expect(shown.calls.c0).toBe(transcript.calls.c0)
  expect(shown.calls.c1?.result).toMatchObject({ isShortened: true })
  expect(JSON.stringify(shown.calls.c1).length).toBeLessThan(200_000)
  expect(JSON.stringify(shown.calls.c1)).toContain('begins so')
  const data = { callId: 'c1', isError: false, content: [{ type: 'text', text: output }] }
  const live = shownEvent({ type: 'tool:result', seq: 9, at: 9, data })
  expect(live).toEqual({ ...data, content: shown.calls.c1?.result?.content, isShortened: true })
})
