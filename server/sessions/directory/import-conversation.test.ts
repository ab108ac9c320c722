import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { applyEvent, emptyTranscript, pendingCalls, type Transcript } from '../../../contract/transcript.ts'
import { modelHistory } from '../../agent/model-history.ts'
import { nextAction } from '../../agent/next-action.ts'
import { silentLogger } from '../../lib/logger.ts'
import { SessionAccess } from '../access/session-access.ts'
import { type FakeChat, fakeChat } from '../chat/fake-chat.ts'
import { SessionFeed } from '../feed/session-feed.ts'
import { conversationImport } from './import-conversation.ts'
import { importedEvents } from './imported-events.ts'
import { SessionDirectory } from './session-directory.ts'
import { transcriptHtml } from './transcript-html.ts'

const HOSTILE = '</script><script>alert(1)</script><img src="https://evil.example/x" onerror=\'x\'>\u202e&amp;'

function conversation(): Transcript {
  const transcript = emptyTranscript()
  let seq = 0
  const add = (type: string, data: object) =>
    applyEvent(transcript, { type, data, seq: ++seq, at: seq } as Parameters<typeof applyEvent>[1])
  const card = { turnId: 't1', server: 'workspace', definition: 'd', hash: 'h', queuePosition: 1, totalInQueue: 1 }
  add('model:selected', { model: 'demo/demo' })
  add('user:message', { turnId: 't1', text: `first ${HOSTILE}` })
  for (const callId of ['ran', 'waits', 'approved'])
    add('tool:approval_required', {
      ...card,
      callId,
      name: `tool${HOSTILE}`,
      args: { command: HOSTILE, deep: { a: [1] } }
    })
  add('tool:approval_resolved', { callId: 'ran', approved: true, by: 'human', always: true })
  add('tool:approval_resolved', { callId: 'approved', approved: true, by: 'human' })
  add('tool:started', { callId: 'approved' })
  add('tool:allowed', { server: 'workspace', name: 'x', definition: 'd' })
  add('tool:result', {
    callId: 'ran',
    isError: false,
    content: [{ type: 'text', text: `out ${HOSTILE}` }, { type: 'image' }]
  })
  add('agent:response', { turnId: 't1', text: 'answer' })
  return transcript
}
const exported = (transcript: Transcript) =>
  JSON.parse(JSON.stringify({ summary: { title: 'Rome\u200b' }, conversation: transcript }))

describe('an imported conversation', () => {
  let fake: FakeChat
  beforeEach(async () => {
    fake = await fakeChat()
  })
  afterEach(() => fake.close())

  function openImport(checkQuota = async () => {}) {
    const { chat, store } = fake
    const access = new SessionAccess(store.keyValues, { MAX_OWNER_SESSIONS: 2, MAX_ADDRESS_SESSIONS: 1000 })
    const directory = new SessionDirectory({
      sessions: {
        hold: async (_id, job) => job({} as never),
        state: () => 'none',
        destroy: async (id) => store.events.remove(id),
        openIds: [],
        releaseLost: async () => {}
      },
      ...{
        access,
        chat,
        feed: new SessionFeed(),
        logger: silentLogger,
        store: store.sessions,
        keyValues: store.keyValues,
        events: store.events
      },
      ...{ idleMs: 1000, network: 'none' }
    })
    const models = { resolve: async () => 'demo/demo' }
    return { access, run: conversationImport({ directory, chat, models, events: store.events, checkQuota }) }
  }

  // Checked: if the decisions of the file are kept, the calls count as approved.
  it('is a new session of the importer, whose calls are history: nothing waits, nothing runs, nothing is allowed', async () => {
    const { access, run } = openImport()
    const { sessionId, title, pendingApprovals } = await run(exported(conversation()), 'me', 'here')
    expect({ title, pendingApprovals }).toEqual({ title: 'Rome', pendingApprovals: 0 })
    expect((await access.list('me')).map((meta) => meta.sessionId)).toEqual([sessionId])
    expect(await access.list('someone else')).toEqual([])
    const transcript = await fake.chat.transcript(sessionId)
    expect(transcript.entries.map(({ kind }) => kind)).toEqual(['notice', 'user', 'call', 'call', 'call', 'agent'])
    expect(pendingCalls(transcript)).toEqual([])
    expect(transcript).toMatchObject({ turnId: null, allowed: {}, usage: { inputTokens: 0 } })
    for (const call of Object.values(transcript.calls)) {
      expect(call.decision).toMatchObject({ approved: false, by: 'imported' })
      expect(call.startedAt).toBeUndefined()
    }
    expect(transcript.calls['imported-1']?.result?.content).toEqual([{ type: 'text', text: `out ${HOSTILE}\n[image]` }])
    expect(nextAction(transcript, 0, { maxSteps: 5 }).type).not.toBe('run')
    // The model continues where the conversation ended, and sees no calls that it could take for its own.
    await fake.chat.send(sessionId, { text: 'go on', id: undefined, attachments: undefined } as never)
    await expect.poll(() => fake.requests.at(-1)?.messages.at(-1)).toMatchObject({ text: 'go on' })
    expect(fake.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })

  it('leaves nothing behind when it is refused', async () => {
    const { access, run } = openImport(async () => Promise.reject(new Error('full')))
    await expect(run(exported(conversation()), 'me', 'here')).rejects.toThrow('full')
    expect(await access.list('me')).toEqual([])
  })
})

describe('a file', () => {
  it('that is no conversation, or an endless one, is refused', () => {
    let deep: unknown = 'x'
    for (let level = 0; level < 100; level++) deep = { deep }
    const { conversation: whole } = exported(conversation())
    for (const value of [
      ...[null, [], 'x', {}, { conversation: {} }, { conversation: { entries: [], calls: {} } }],
      { conversation: { entries: [{ kind: 'agent', text: 'nobody asked' }], calls: {} } },
      { conversation: { entries: Array.from({ length: 10_001 }, () => ({ kind: 'user', text: 'x' })), calls: {} } },
      { conversation: { ...whole, calls: { ran: { ...whole.calls.ran, args: { deep } } } } }
    ])
      expect(() => importedEvents(value)).toThrow(expect.objectContaining({ code: 'invalid_import' }))
  })

  it('is cut to size, and what it has of other kinds is left out', () => {
    const huge = 'x'.repeat(3_000_000)
    const call = {
      server: 's'.repeat(999),
      name: 'n',
      args: { huge },
      result: { isError: true, content: [{ text: huge }] }
    }
    const entries = [
      ...[
        { kind: 'agent', text: 'before' },
        { kind: 'user', text: huge },
        { kind: 'hologram', text: 'later version' }
      ],
      ...[
        { kind: 'call', callId: 'c' },
        { kind: 'call', callId: 'toString' },
        { kind: 'agent', text: 'old', superseded: true }
      ],
      { kind: 'agent', text: `\ud800${huge}` }
    ]
    const { events } = importedEvents({ conversation: { entries, calls: { c: call, d: 'no call' } } })
    expect(events.map(({ type }) => type)).toEqual([
      ...['session:notice', 'user:message', 'tool:approval_required', 'tool:approval_resolved', 'tool:result'],
      ...['agent:response', 'turn:end']
    ])
    for (const { data } of events) expect(JSON.stringify(data).length).toBeLessThan(1_100_000)
    expect(JSON.stringify(events)).not.toContain('\\ud800')
    expect(JSON.stringify(events)).not.toContain('hologram')
  })

  // Checked: without the set of calls that are in already, this file of 660 kB becomes 4 GB of events.
  it('that names one large call again and again has it once', () => {
    const huge = 'x'.repeat(200_000)
    const call = { server: 's', name: 'n', args: { huge }, result: { isError: false, content: [{ text: huge }] } }
    const again = Array.from({ length: 9998 }, () => ({ kind: 'call', callId: 'c' }))
    const { events } = importedEvents({ conversation: { entries: [{ kind: 'user' }, ...again], calls: { c: call } } })
    expect(events).toHaveLength(6)
    expect(JSON.stringify(events).length).toBeLessThan(500_000)
  })

  it.each([
    ['no part', null],
    ['a type that is no text', { type: { toString: 1, valueOf: 1 } }],
    ['a text that is no text', { type: 'text', text: { length: 1 } }]
  ])('with %s in a result is imported', (_, part) => {
    const content = Array.from({ length: 100_000 }, () => part)
    const call = { server: 's', name: 'n', args: {}, result: { isError: false, content } }
    const entries = [{ kind: 'user' }, { kind: 'call', callId: 'c' }]
    const { events } = importedEvents({ conversation: { entries, calls: { c: call } } })
    expect(JSON.stringify(events).length).toBeLessThan(20_000)
  })
})

// Checked: without escaping `<`, the script is in the file.
it('a shared HTML file runs nothing, loads nothing and says all', async () => {
  const html = await transcriptHtml(`Title ${HOSTILE}`, conversation())
  expect(html).not.toMatch(/<script|<img|<link|<iframe|<a\b|javascript:|\son\w+=["']|url\(/i)
  expect(html).not.toMatch(/(?:href|src|action|srcset|background)=["']/i)
  expect(html).toContain("default-src 'none'; style-src 'sha256-")
  expect(html).toContain('first &lt;/script&gt;&lt;script&gt;alert(1)')
  expect(html).toContain('⟨U+202E⟩&amp;amp;')
  expect(html).not.toContain('\u202e')
  expect(html).toContain('answer')
  const later = conversation()
  later.entries.push({ kind: 'hologram', seq: 99, at: 99 } as never)
  expect(await transcriptHtml('x', later)).not.toContain('hologram')
  expect(modelHistory([], later)).toEqual([])
})
