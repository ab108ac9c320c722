import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import { transcriptMarkdown } from '../../../contract/transcript-markdown.ts'
import type { StepEvent, StepRequest } from '../../models/port.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())
const open = async (options: FakeChatOptions = {}) => (fake = await fakeChat(options))

const ended = (turnId: string) => fake.until('turn:end', (data) => data.turnId === turnId)
const entries = async () => (await fake.chat.transcript('s1')).entries
const shown = async () =>
  (await entries()).flatMap((entry) => ('text' in entry ? [`${entry.rewound ? '- ' : ''}${entry.text}`] : []))
const seqOf = async (text: string) =>
  (await entries()).find((entry) => 'text' in entry && entry.text === text && !entry.rewound)?.seq ?? 0
const texts = (at: number) => fake.requests[at]?.messages.map((message) => ('text' in message ? message.text : ''))
const answering = { model: (_: StepRequest, step: number) => [said(`answer ${step}`)] }
const desk = {
  server: 'desk',
  list: async () => [{ name: 'read', description: 'Reads.', inputSchema: { type: 'object' } }],
  call: async () => ({ content: [{ type: 'text', text: 'ok' }] })
}

async function talk(...messages: string[]): Promise<void> {
  for (const text of messages) await ended((await fake.chat.send('s1', { text })).turnId)
}

it('leaves out of the history what was taken back, and shows it crossed out', async () => {
  const { chat } = await open(answering)
  await talk('one', 'two', 'three')
  expect(await chat.rewind('s1', { from: await seqOf('two') })).toEqual({})
  expect(await shown()).toEqual(['one', 'answer 0', '- two', '- answer 1', '- three', '- answer 2'])
  expect((await entries()).at(-1)).toMatchObject({ kind: 'rewound' })
  const markdown = transcriptMarkdown('Title', await chat.transcript('s1'))
  expect(markdown).toMatch(/## You\n\none.*## You \(taken back\)\n\ntwo/s)
  await expect(chat.retry('s1', {})).rejects.toMatchObject({ code: 'nothing_to_retry' })
  await talk('other')
  expect(texts(3)).toEqual(['one', '', 'other'])
  await chat.rewind('s1', { from: await seqOf('one') })
  await talk('new')
  expect(texts(4)).toEqual(['new'])
  expect((await fake.log()).filter(({ type }) => type === 'user:message')).toHaveLength(5)
})

const lastRewind = async () => (await entries()).findLast(({ kind }) => kind === 'rewound')?.seq ?? 0

it('brings back what a rewind took back, and nothing that an earlier one did', async () => {
  const { chat } = await open(answering)
  await talk('one', 'two', 'three')
  await chat.rewind('s1', { from: await seqOf('three') })
  await chat.rewind('s1', { from: await seqOf('two') })
  const of = await lastRewind()
  await chat.restore('s1', { of })
  expect(await shown()).toEqual(['one', 'answer 0', 'two', 'answer 1', '- three', '- answer 2'])
  await expect(chat.restore('s1', { of })).rejects.toMatchObject({ code: 'not_restorable' })
  await talk('other')
  expect(texts(3)).toEqual(['one', '', 'two', '', 'other'])
  // Something was said since the first rewind.
  const first = (await entries()).find(({ kind }) => kind === 'rewound')?.seq ?? 0
  await expect(chat.restore('s1', { of: first })).rejects.toMatchObject({ code: 'not_restorable' })
  await chat.rewind('s1', { from: await seqOf('two') })
  await chat.restore('s1', { of: await lastRewind() })
  await chat.rewind('s1', { from: await seqOf('other') })
  await chat.restore('s1', { of: await lastRewind() })
  expect(await shown()).toEqual([
    ...['one', 'answer 0', 'two', 'answer 1', '- three', '- answer 2'],
    'other',
    'answer 3'
  ])
})

// Checked: if it is stored anyway, an older instance takes the next message for one that it has already.
it('does not undo a rewind while an older instance could not read that', async () => {
  const { chat } = await open({ ...answering, mayWrite: async (format) => format < 2 })
  await talk('one')
  await chat.rewind('s1', { from: await seqOf('one') })
  await expect(chat.restore('s1', { of: await lastRewind() })).rejects.toMatchObject({ code: 'older_instances' })
  expect(await shown()).toEqual(['- one', '- answer 0'])
})

it('lets one of a message and the undoing of a rewind count, if both come at once', async () => {
  const { chat } = await open(answering)
  await talk('one')
  await chat.rewind('s1', { from: await seqOf('one') })
  const of = await lastRewind()
  const [sent, restored] = await Promise.allSettled([chat.send('s1', { text: 'two' }), chat.restore('s1', { of })])
  expect([sent.status, restored.status].toSorted()).toEqual(['fulfilled', 'rejected'])
  const isBack = restored.status === 'fulfilled'
  expect((await shown()).slice(0, 2)).toEqual(isBack ? ['one', 'answer 0'] : ['- one', '- answer 0'])
})

// Checked: with two appends, a message that comes between them is taken back too, and the second command is a second message.
it('puts an edited message in the place of the old one in one append, and once', async () => {
  const { chat } = await open(answering)
  await talk('one', 'tow')
  const from = await seqOf('tow')
  const edit = () => chat.rewind('s1', { from, message: { text: 'two', id: 'edit-1' } })
  const turns = await Promise.all([edit(), edit(), edit()])
  expect([...turns, await edit()]).toEqual(Array(4).fill({ turnId: 't4' }))
  await ended('t4')
  expect(texts(2)).toEqual(['one', '', 'two'])
  const log = await fake.log()
  expect(log.filter(({ type }) => type === 'history:rewound')).toHaveLength(1)
  const at = log.findIndex(({ type }) => type === 'history:rewound')
  expect(log[at + 1]).toMatchObject({ type: 'user:message', data: { text: 'two' } })
  await chat.retry('s1', {})
  await ended('t5')
  expect(texts(3)).toEqual(['one', '', 'two'])
})

it('ends a running turn first, and what that says later was taken back too', async () => {
  async function* hanging({ signal }: StepRequest): AsyncGenerator<StepEvent> {
    yield { type: 'text-delta', text: 'half' }
    await once(signal, 'abort')
  }
  const begun = Promise.withResolvers<void>()
  const { chat, store } = await open({
    model: (request, step) => (step === 1 ? hanging(request) : [said(`answer ${step}`)]),
    live: (_, type) => type === 'agent:delta' && begun.resolve()
  })
  await talk('one')
  await chat.send('s1', { text: 'two' })
  await begun.promise
  await chat.rewind('s1', { from: await seqOf('two') })
  await ended('t2')
  // As another instance may write it.
  await store.events.append('s1', [
    { type: 'agent:response', data: { turnId: 't2', text: 'late' } },
    { type: 'agent:error', data: { turnId: 't2', code: 'x', message: 'late' } }
  ])
  expect(await shown()).toEqual(['one', 'answer 0', '- two', '- half', '- late'])
  expect((await entries()).at(-1)).toMatchObject({ kind: 'error', rewound: true })
  await talk('three')
  expect(texts(2)).toEqual(['one', '', 'three'])
  expect((await shown()).at(-1)).toBe('answer 2')
})

it('takes back a step of the model as a whole, and cancels its waiting calls', async () => {
  const model = ({ messages }: StepRequest, step: number) =>
    messages.at(-1)?.role === 'tool' ? [said('done')] : [called('desk__read', '{}', `c${step}`)]
  const { chat, until } = await open({ model, sources: [desk] })
  await chat.send('s1', { text: 'go' })
  await until('tool:approval_required')
  const call = (await entries()).find(({ kind }) => kind === 'call')
  await chat.rewind('s1', { from: call?.seq ?? 0 })
  const { calls } = await chat.transcript('s1')
  expect(Object.values(calls)).toMatchObject([{ decision: { approved: false, by: 'cancel' } }])
  await chat.send('s1', { text: 'again' })
  await until('tool:approval_required', ({ turnId }) => turnId === 't3')
  expect(fake.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'user'])
})

it('tells again which files the person changed, if that message is taken back', async () => {
  const { chat, store } = await open(answering)
  await talk('one')
  const files = [{ action: 'uploaded', path: 'a.csv' }]
  await store.events.append('s1', [{ type: 'session:notice', data: { code: 'files_changed', message: '', files } }])
  await talk('two')
  await chat.rewind('s1', { from: await seqOf('two') })
  await talk('three')
  expect(fake.requests[2]?.messages.at(-1)).toMatchObject({ text: 'three', note: expect.stringContaining('"a.csv"') })
  expect((await entries()).find(({ kind }) => kind === 'notice')?.rewound).toBeUndefined()
})

it('discards an open review of the turns that are taken back, and of no others', async () => {
  const { chat, store } = await open(answering)
  await talk('one')
  const changes = { changeId: 'review:r1', hash: 'h1', total: 1, files: [{ path: 'a' }] }
  await store.events.append('s1', [{ type: 'review:opened', data: { reviewId: 'r1', turnId: 't1', changes } }])
  await talk('two')
  await chat.rewind('s1', { from: await seqOf('two') })
  expect((await chat.transcript('s1')).review).toMatchObject({ reviewId: 'r1' })
  await chat.rewind('s1', { from: await seqOf('one') })
  const { review, unapplied } = await chat.transcript('s1')
  expect({ review, unapplied }).toEqual({ review: null, unapplied: 'r1' })
  await expect(chat.decideReview('s1', { reviewId: 'r1', hash: 'h1', accept: 'all' })).rejects.toMatchObject({
    code: 'already_decided'
  })
})

it('is refused for what the model does not have in its history', async () => {
  const { chat } = await open({ ...answering, policy: createPolicy([]) })
  await talk('one', 'two')
  const refused = async (from: number, message: RegExp) =>
    expect(chat.rewind('s1', { from })).rejects.toMatchObject({
      code: 'not_rewindable',
      message: expect.stringMatching(message)
    })
  const two = await seqOf('two')
  await refused(9999, /no message/)
  await chat.rewind('s1', { from: two })
  await refused(two, /already taken back/)
  const one = await seqOf('one')
  await chat.reset('s1')
  await refused(one, /fresh start/)
})
