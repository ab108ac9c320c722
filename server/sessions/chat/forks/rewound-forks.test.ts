import { once } from 'node:events'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { localRealm } from '../../../code/realms/local-realm.fixture.ts'
import { AppError } from '../../../lib/errors.ts'
import type { StepEvent, StepRequest } from '../../../models/port.ts'
import { FakeConnection } from '../../../sandbox/fake-engine.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sandboxes/session-manager.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

let sessions: FakeSessions
let manager: SessionManager
let fake: FakeChat
/** Resolves when the model has begun an answer that ends only when it is stopped. */
let hanging: PromiseWithResolvers<void>

beforeEach(async () => {
  sessions = await fakeSessions()
  hanging = Promise.withResolvers()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await fake.close()
  await sessions.close()
})

const write = (path: string, callId = `w-${path}`) =>
  called('write_file', JSON.stringify({ path, content: path }), callId)

const other = {
  server: 'other',
  list: async () => [{ name: 'x', inputSchema: { type: 'object' } }],
  call: async () => ({ content: [] })
}
const PROGRAM = "await tools.workspace.write_file({ path: 'a.txt', content: 'a' })"

/** Each step of the model: an event, or `hang`. */
async function open(...steps: (StepEvent | 'hang')[]): Promise<void> {
  manager = await sessions.start('a')
  const hang = async function* ({ signal }: StepRequest): AsyncGenerator<StepEvent> {
    hanging.resolve()
    yield { type: 'text-delta', text: 'half' }
    await once(signal, 'abort')
  }
  fake = await fakeChat({
    model: (request, at) => (steps[at] === 'hang' ? hang(request) : [steps[at] ?? said('ok')]),
    options: { mode: 'review' },
    on: { store: sessions.store, sessions: manager },
    // Programs are offered only beside tools of servers.
    sources: [other],
    programs: { openRealm: async () => localRealm(), lingerMs: 5, pollMs: 2 }
  })
}

const messageSeq = async (text: string) => {
  const { entries } = await fake.chat.transcript('s1')
  return entries.find((entry) => entry.kind === 'user' && entry.text === text)?.seq ?? 0
}
const ended = (turnId: string) => fake.until('turn:end', (data) => data.turnId === turnId)
const paths = (event: { data: Record<string, unknown> }) =>
  (event.data.changes as { files: { path: string }[] }).files.map(({ path }) => path)

/** Neither the log nor the checkpoint has changes that wait, and no fork is left. */
async function nothingWaits(): Promise<void> {
  await vi.waitFor(async () => {
    const { review, forkedTurn, unapplied } = await fake.chat.transcript('s1')
    expect({ review, forkedTurn, unapplied }).toEqual({ review: null, forkedTurn: null, unapplied: null })
  })
  const saved = await manager.openSaved('s1')
  expect([...saved.changeSets.keys()]).toEqual([])
  expect([...saved.entries.keys()]).toEqual([])
  await saved.close()
  await vi.waitFor(() => expect(sessions.engine.containers.size).toBe(1))
}

// Seen before: a review of the changes that were taken back opened.
it('discards what a running turn has changed in its fork, if the turn is taken back', async () => {
  await open(write('a.txt'), 'hang')
  await fake.chat.send('s1', { text: 'one' })
  await hanging.promise
  await fake.chat.rewind('s1', { from: await messageSeq('one') })
  await ended('t1')
  await nothingWaits()
})

it.each([
  ['a call', write('a.txt')],
  ['a program', called('run_code', JSON.stringify({ code: PROGRAM }), 'prog')]
])('begins an edited turn in a fork without what %s has changed in the one that it replaces', async (_, first) => {
  await open(first, 'hang', write('b.txt'))
  await fake.chat.send('s1', { text: 'one' })
  await hanging.promise
  expect((await fake.chat.transcript('s1')).forkedTurn).toBe('t1')
  await fake.chat.rewind('s1', { from: await messageSeq('one'), message: { text: 'instead', id: 'edit' } })
  await ended('t3')
  const opened = await fake.until('review:opened', ({ turnId }) => turnId === 't3')
  expect(paths(opened)).toEqual(['b.txt'])
  const told = JSON.stringify(fake.requests.at(-1)?.messages)
  expect(told).not.toContain('a.txt')
})

it('discards an open review too if it has grown by a turn that is taken back, and tells the model', async () => {
  await open(write('a.txt'), said('done'), write('b.txt'), 'hang')
  await fake.chat.send('s1', { text: 'one' })
  await fake.until('review:opened')
  await fake.chat.send('s1', { text: 'two' })
  await hanging.promise
  await fake.chat.rewind('s1', { from: await messageSeq('two') })
  await ended('t2')
  await nothingWaits()
  await fake.chat.send('s1', { text: 'three' })
  await ended('t4')
  const note = expect.stringContaining('did not accept those of "a.txt", "b.txt"')
  expect(fake.requests.at(-1)?.messages.at(-1)).toMatchObject({ text: 'three', note })
})

// Seen before: the stopped call had grown the changes, so they were offered once more instead of being discarded.
it('discards an open review while a call of a later turn still runs in its fork', async () => {
  await open(write('a.txt'), said('done'), write('b.txt'))
  await fake.chat.send('s1', { text: 'one' })
  await fake.until('review:opened')
  const { callTool } = FakeConnection.prototype
  const running = Promise.withResolvers<void>()
  const slow = vi.spyOn(FakeConnection.prototype, 'callTool')
  slow.mockImplementationOnce(async function (this: FakeConnection, ...call) {
    await callTool.apply(this, call)
    running.resolve()
    const { signal } = (call as unknown as [string, object, { signal: AbortSignal }])[2]
    await once(signal, 'abort')
    throw new AppError('cancelled', 'cancelled', 'The turn was stopped.')
  })
  await fake.chat.send('s1', { text: 'two' })
  await running.promise
  await fake.chat.rewind('s1', { from: await messageSeq('one') })
  await ended('t2')
  await nothingWaits()
})

// Seen before: the decision was stored and did not count, and nobody could decide the review again.
it('can be decided again if the fork has gone on at the moment of a decision', async () => {
  await open(write('a.txt'), said('done'), write('b.txt'), said('done'))
  await fake.chat.send('s1', { text: 'one' })
  const first = await fake.until('review:opened')
  const { openSaved } = manager
  vi.spyOn(manager, 'openSaved').mockImplementationOnce(async (...given) => {
    await fake.chat.send('s1', { text: 'two' })
    await fake.until('review:opened', ({ turnId }) => turnId === 't2')
    return openSaved.apply(manager, given)
  })
  const hashOf = ({ data }: { data: Record<string, unknown> }) => (data.changes as { hash: string }).hash
  const decide = (hash: string) => fake.chat.decideReview('s1', { reviewId: 'r-t1', hash, accept: 'all' })
  await expect(decide(hashOf(first))).rejects.toMatchObject({ code: 'stale' })
  const second = await fake.until('review:opened', ({ turnId }) => turnId === 't2')
  await decide(hashOf(second))
  expect(paths(await fake.until('review:applied'))).toEqual(['a.txt', 'b.txt'])
})

// Seen before: no review was opened until somebody did something in the session.
it('opens the review when the sandbox can be opened again', async () => {
  await open(write('a.txt'), said('done'))
  const { hold } = manager
  let failures = 2
  vi.spyOn(manager, 'hold').mockImplementation(
    (id, job, options) =>
      hold.call(
        manager,
        id,
        async (held) => {
          const review = async () => {
            if (failures-- > 0) throw new AppError('unavailable', 'engine_unavailable', 'The engine does not answer.')
            return held.forks.review()
          }
          return job({ ...held, forks: { ...held.forks, previewed: [], review } })
        },
        options
      ) as never
  )
  await fake.chat.send('s1', { text: 'one' })
  expect(paths(await fake.until('review:opened'))).toEqual(['a.txt'])
  expect(failures).toBeLessThan(0)
})
