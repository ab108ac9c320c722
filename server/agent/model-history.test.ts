import { describe, expect, it } from 'vitest'
import type { SessionEvent } from '../../contract/events.ts'
import { applyEvent, emptyTranscript } from '../../contract/transcript.ts'
import { contentText, modelHistory, sinceFreshStart } from './model-history.ts'

type Bare = {
  [T in SessionEvent['type']]: { type: T; data: Extract<SessionEvent, { type: T }>['data'] }
}[SessionEvent['type']]

function log(...bare: Bare[]): SessionEvent[] {
  return bare.map((event, at) => ({ ...event, seq: at + 1, at }) as SessionEvent)
}
const history = (...bare: Bare[]) => {
  const events = log(...bare)
  return modelHistory(events, events.reduce(applyEvent, emptyTranscript()))
}
const ask = (turnId: string, text = turnId): Bare => ({ type: 'user:message', data: { turnId, text } })
const end = (turnId: string): Bare => ({ type: 'turn:end', data: { turnId, reason: 'done' } })
const say = (turnId: string, text: string): Bare => ({ type: 'agent:response', data: { turnId, text } })
const callParts = [{ type: 'tool-call', callId: 'c1', name: 'run', args: '{}' }]
const called: Bare[] = [
  ask('t1'),
  { type: 'agent:response', data: { turnId: 't1', text: '', parts: callParts } },
  {
    type: 'tool:approval_required',
    data: {
      callId: 'c1',
      turnId: 't1',
      server: 's',
      name: 'run',
      args: {},
      definition: '',
      hash: '',
      queuePosition: 1,
      totalInQueue: 1
    }
  }
]
const decided = (more: object): Bare => ({
  type: 'tool:approval_resolved',
  data: { callId: 'c1', approved: true, by: 'human', ...more }
})
const result: Bare = {
  type: 'tool:result',
  data: { callId: 'c1', isError: false, content: [{ type: 'text', text: 'out' }] }
}
const answer = (...bare: Bare[]) => history(...called, ...bare).find(({ role }) => role === 'tool')

describe('what the model is told', () => {
  it('is the conversation since the last fresh start', () => {
    expect(history(ask('t1'), say('t1', 'old'), end('t1'), { type: 'history:reset', data: {} }, ask('t2'))).toEqual([
      { role: 'user', text: 't2' }
    ])
  })

  it('says which files of a kept call are not in the workspace', () => {
    const choices = { 'a.txt': 'fork', 'b.txt': 'workspace' }
    expect(JSON.stringify(answer(decided({ choices }), result))).toContain(
      String.raw`The user kept another version of these files: \"b.txt\".\nout`
    )
  })

  it('says with the next question which files the person has reverted', () => {
    const files = [{ path: 'a.ts' }, { path: 'old.ts', from: 'new.ts' }]
    const changes = { changeId: 'revert:1', hash: 'h', total: 2, files }
    const reverted: Bare = { type: 'files:reverted', data: { of: 'call:c1', scope: 'one', changes, by: 'human' } }
    const sent = history(ask('t1'), end('t1'), reverted, ask('t2'))
    expect(sent.map((message) => message.role === 'user' && message.note)).toEqual([
      undefined,
      '[Since your last answer, the user has changed files of the workspace: reverted "a.ts"; moved "new.ts" to "old.ts".]'
    ])
  })

  // Checked: without the quotes, the name of a file ends the note.
  it('says with the next question which files the person has changed, once, with their names quoted', () => {
    const changed = (path: string): Bare => ({
      type: 'session:notice',
      data: { code: 'files_changed', message: 'x', files: [{ action: 'edited', path }] }
    })
    const sent = history(
      ask('t1'),
      changed('a.ts'),
      say('t1', 'hi'),
      end('t1'),
      changed('b"].ts'),
      ask('t2'),
      ask('t3')
    )
    expect(sent.map((message) => message.role === 'user' && message.note)).toEqual([
      undefined,
      false,
      String.raw`[Since your last answer, the user has changed files of the workspace: edited "a.ts" and "b\"].ts".]`,
      undefined
    ])
  })

  it('keeps a question that was asked just before a fresh start', () => {
    expect(history(ask('t1'), end('t1'), ask('t2'), { type: 'model:selected', data: { model: 'm' } })).toEqual([
      { role: 'user', text: 't2' }
    ])
    const events = log(ask('t2'), { type: 'history:reset', data: {} }, say('t2', 'yes'))
    expect(sinceFreshStart(sinceFreshStart(events))).toEqual(sinceFreshStart(events))
  })

  it('leaves out late text of a stopped turn, so that it does not answer the next question', () => {
    expect(history(ask('t1'), end('t1'), ask('t2'), say('t1', 'late'))).toEqual([
      { role: 'user', text: 't1' },
      { role: 'user', text: 't2' }
    ])
  })

  it('contains partial answers, marked, also if they were stored late; a turn that goes on is asked to continue', () => {
    const partial = (turnId: string, reason: 'stopped' | 'failed' | 'server'): Bare => {
      return { type: 'agent:response', data: { turnId, text: 'Hel', partial: reason } }
    }
    const told = (reason: string) => ({
      role: 'assistant',
      parts: [{ type: 'text', text: expect.stringMatching(`Hel\n\n\\[.*${reason}.*\\]`) }]
    })
    const [t1, t2] = [
      { role: 'user', text: 't1' },
      { role: 'user', text: 't2' }
    ]
    expect(history(ask('t1'), partial('t1', 'stopped'), end('t1'), ask('t2'))).toEqual([t1, told('stopped'), t2])
    expect(history(ask('t1'), end('t1'), partial('t1', 'stopped'), ask('t2'))).toEqual([t1, told('stopped'), t2])
    const goesOn = { role: 'user', text: expect.stringContaining('Continue') }
    expect(history(ask('t1'), partial('t1', 'server'))).toEqual([t1, told('server'), goesOn])
    expect(history(ask('t1'), partial('t1', 'server'), say('t1', 'lo'), end('t1'), ask('t2')).slice(2)).toEqual([
      goesOn,
      { role: 'assistant', parts: [{ type: 'text', text: 'lo' }] },
      t2
    ])
  })

  it('has an answer to every call', () => {
    expect(answer()).toMatchObject({ answers: [{ callId: 'c1', isError: true, text: 'This call was never run.' }] })
    expect(answer(decided({ approved: false, reason: 'no rockets' }))).toMatchObject({
      answers: [{ isError: true, text: expect.stringContaining('no rockets') }]
    })
    expect(answer(decided({}))).toMatchObject({ answers: [{ text: expect.stringContaining('stopped') }] })
    expect(answer(decided({}), result)).toMatchObject({ answers: [{ isError: false, text: 'out' }] })
    expect(answer(decided({ args: { x: 1 } }), result)).toMatchObject({
      answers: [{ text: 'The user changed the arguments; this ran with {"x":1}.\nout' }]
    })
  })

  it('sends back exactly what the provider attached', () => {
    const parts = [{ type: 'reasoning', text: 'hm', meta: { vendor: { signature: 'sig==' } } }]
    expect(history(ask('t1'), { type: 'agent:response', data: { turnId: 't1', text: 'x', parts } })[1]).toEqual({
      role: 'assistant',
      parts
    })
  })

  it('is shortened without cutting a character', () => {
    // The cut is inside a character before the gap, then inside one after it.
    for (const end of ['', 'a']) {
      const content = [{ type: 'text', text: `${'a'.repeat(29_999)}${'😀'.repeat(30_000)}${end}` }]
      const told = answer(decided({}), { type: 'tool:result', data: { callId: 'c1', isError: false, content } })
      const text = told?.role === 'tool' ? (told.answers[0]?.text ?? '') : ''
      expect(text.length).toBeLessThan(61_000)
      expect(text).toMatch(/^a+\n\[[^\]]+\]\n😀+a?$/u)
    }
  })

  it('accepts any content that a tool can return', () => {
    expect(contentText([null, 7, { type: 'image' }, { text: 'x' }, 'loose'])).toBe(
      '[unknown content]\n[unknown content]\n[image content]\nx\n[unknown content]'
    )
  })
})
