import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import type { EventLog } from '../../storage/event-log.ts'
import { SessionAccess } from '../access/session-access.ts'
import { type FakeChat, fakeChat } from '../chat/fake-chat.ts'
import { SessionFeed } from '../feed/session-feed.ts'
import { type ListQuery, SessionDirectory } from './session-directory.ts'

let fake: FakeChat
let access: SessionAccess
let directory: SessionDirectory
let reads: string[]
let feed: SessionFeed
let gaveUp: string[]
const ids = Array.from({ length: 20 }, (_, i) => `session-${i}`)

beforeEach(async () => {
  reads = []
  gaveUp = []
  feed = new SessionFeed()
  const counted = (log: EventLog): EventLog => ({
    ...log,
    read(sessionId, options) {
      reads.push(sessionId)
      return log.read(sessionId, options)
    }
  })
  fake = await fakeChat({ events: counted })
  const { chat, store } = fake
  access = new SessionAccess(store.keyValues, { MAX_OWNER_SESSIONS: 100, MAX_ADDRESS_SESSIONS: 1000 })
  for (const id of ids) {
    await access.open(id, { owner: 'me' })
    await chat.begin(id, 'demo/demo')
  }
  directory = new SessionDirectory({
    access,
    chat,
    feed,
    sessions: {
      hold: async () => Promise.reject(new Error('not here')),
      state: () => 'none',
      destroy: async () => {},
      openIds: ['session-1', 'no-tab'],
      releaseLost: async (id) => void gaveUp.push(id)
    },
    logger: silentLogger,
    store: store.sessions,
    keyValues: store.keyValues,
    events: store.events,
    idleMs: 1000,
    network: 'none'
  })
})

afterEach(() => fake.close())

const asked = (callId: string) => ({
  type: 'tool:approval_required',
  data: {
    ...{ callId, turnId: 't1', server: 'workspace', name: 'read_file', args: {}, hash: 'h', definition: 'd' },
    ...{ queuePosition: 1, totalInQueue: 1 }
  }
})
const listed = async (owner: string) => (await directory.list(owner, { limit: 1000 })).sessions

describe('sessions that nobody looks at', () => {
  // Checked: if every read leaves a chat open, the janitor's notice keeps the conversation of each recycled session in memory.
  it('are not kept in memory just because someone asked about them', async () => {
    await fake.chat.notice('session-1', 'sandbox_recycled', 'gone')
    expect(await directory.state('session-1')).toMatchObject({ sandbox: 'none' })
    await directory.summary('session-2')
    await fake.chat.transcript('session-3')
    expect(fake.chat.openCount).toBe(0)
  })

  it('are not kept in memory for a query that comes after the tab is gone', async () => {
    const detach = fake.chat.attach('session-1')
    expect(fake.chat.openCount).toBe(1)
    const late = fake.chat.transcript('session-1')
    detach()
    await late
    await fake.chat.transcript('session-1')
    await expect.poll(() => fake.chat.openCount).toBe(0)
  })
})

describe('the list', () => {
  it('comes in pages, which are read only when they are asked for', async () => {
    for (const id of ids) await fake.store.sessions.acquire(id, 'here', 1000)
    reads = []
    const first = await directory.list('me', { limit: 4 })
    expect(new Set(reads).size).toBe(4)
    expect(first).toMatchObject({ total: ids.length, sessions: { length: 4 } })
    const seen = [...first.sessions]
    for (let { next } = first; next !== null; ) {
      const page = await directory.list('me', { limit: 4, before: next })
      seen.push(...page.sessions)
      next = page.next
    }
    expect(seen.map(({ sessionId }) => sessionId).sort()).toEqual([...ids].sort())
    const times = first.sessions.map(({ activeAt }) => activeAt)
    expect(times).toEqual(times.toSorted((a, b) => b - a))
  })

  it('filters by a part of the title, page by page, and by waiting calls', async () => {
    await access.rename('session-3', 'Straße NACH Rom')
    await access.rename('session-9', 'nach Hause')
    const found = async (query: Omit<ListQuery, 'limit'>, limit = 1) => {
      const { sessions, ...rest } = await directory.list('me', { limit, ...query })
      return { ids: sessions.map(({ sessionId }) => sessionId), ...rest }
    }
    const first = await found({ title: ' Nach ' })
    expect(first.total).toBe(2)
    const second = await found({ title: 'nach', before: first.next ?? '' })
    expect([...first.ids, ...second.ids].sort()).toEqual(['session-3', 'session-9'])
    expect(second.next).toBe(null)
    expect(await found({ title: 'nowhere' })).toEqual({ ids: [], next: null, total: 0 })
    expect((await found({ title: 'new sess' })).total).toBe(ids.length - 2)
    for (const [id, calls] of [
      ['session-5', 2],
      ['session-9', 1]
    ] as const)
      await fake.store.events.append(id, [
        { type: 'user:message', data: { turnId: 't1', text: 'go' } },
        ...Array.from({ length: calls }, (_, at) => asked(`c${at}`))
      ])
    const waiting = await found({ waiting: true })
    expect(waiting).toMatchObject({ total: 2, waitingCalls: 3, ids: { length: 1 } })
    expect(await found({ waiting: true, title: 'hause' })).toMatchObject({ total: 1, waitingCalls: 1 })
    expect((await directory.list('someone else', { limit: 9, title: 'nach', waiting: true })).total).toBe(0)
    const changes = { changeId: 'review:r', hash: 'h', total: 7, files: [] }
    await fake.store.events.append('session-3', [
      { type: 'review:opened', data: { reviewId: 'r', turnId: 't1', changes } }
    ])
    const { sessions, waitingCalls } = await directory.list('me', { limit: 9, title: 'rom', waiting: true })
    expect(sessions).toMatchObject([{ sessionId: 'session-3', review: { reviewId: 'r', files: 7 } }])
    expect(waitingCalls).toBe(0)
  })

  it('names the open questions of MCP servers, and finds the sessions that have some', async () => {
    const { data } = asked('c')
    const question = { callId: 'c', id: 'q1', message: 'Which one?', fields: [], expiresAt: Date.now() + 60_000 }
    await fake.store.events.append('session-3', [
      { type: 'user:message', data: { turnId: 't1', text: 'go' } },
      { type: 'tool:approval_required', data: { ...data, server: 'shop', name: 'order' } },
      { type: 'tool:approval_resolved', data: { callId: 'c', approved: true, by: 'human' } },
      { type: 'tool:started', data: { callId: 'c' } },
      { type: 'tool:question', data: question }
    ])
    const waiting = await directory.list('me', { limit: 9, waiting: true })
    const questions = [{ callId: 'c', id: 'q1', server: 'shop', name: 'order', at: expect.any(Number) }]
    expect(waiting).toMatchObject({ total: 1, waitingCalls: 0, sessions: [{ sessionId: 'session-3', questions }] })
    await fake.store.events.append('session-3', [
      { type: 'tool:question_answered', data: { callId: 'c', id: 'q1', action: 'decline', by: 'human' } }
    ])
    expect((await directory.list('me', { limit: 9, waiting: true })).total).toBe(0)
    expect((await directory.summary('session-3')).questions).toBeUndefined()
  })

  it('reads the logs of those sessions only in which something happened since', async () => {
    expect(await listed('me')).toHaveLength(ids.length)
    reads = []
    expect(await listed('me')).toHaveLength(ids.length)
    expect(reads).toEqual([])
    const later = { type: 'user:message', data: { turnId: 't', text: 'news' } }
    const newest = Math.max(...(await listed('me')).map(({ activeAt }) => activeAt))
    await expect.poll(() => Date.now()).toBeGreaterThan(newest)
    await fake.store.events.append('session-7', [later])
    const seen = await listed('me')
    expect(new Set(reads)).toEqual(new Set(['session-7']))
    expect(seen[0]?.sessionId).toBe('session-7')
  })

  // Seen before: after a restart every session that had a sandbox was active "just now".
  it('counts what a person or the model did as activity, and no bookkeeping of ours', async () => {
    const [first] = await fake.store.events.append('session-3', [
      { type: 'user:message', data: { turnId: 't1', text: 'go' } },
      asked('c')
    ])
    await fake.store.events.append('session-3', [{ type: 'tool:started', data: { callId: 'c' } }])
    const before = (await directory.summary('session-3')).activeAt
    expect(before).toBeGreaterThanOrEqual(first?.at ?? Infinity)
    await expect.poll(() => Date.now()).toBeGreaterThan(before + 5)
    await fake.store.sessions.acquire('session-3', 'me', 1000)
    await fake.store.events.append('session-3', [
      { type: 'tool:result', data: { callId: 'c', isError: true, content: [], interruptedBy: 'server' } },
      { type: 'turn:end', data: { turnId: 't1', reason: 'error' } }
    ])
    await fake.chat.notice('session-3', 'sandbox_recycled', 'gone')
    expect((await directory.summary('session-3')).activeAt).toBe(before)
  })

  /** Stored and published, as the chat does it. */
  async function happen(id: string, type: string, data: Record<string, unknown>): Promise<void> {
    const changed = Promise.withResolvers<void>()
    const stop = feed.subscribe({ changed: (sessionId) => sessionId === id && changed.resolve() })
    const at = Date.now()
    await expect.poll(() => Date.now()).toBeGreaterThan(at)
    feed.stored(id, await fake.store.events.append(id, [{ type, data }]))
    await changed.promise
    stop()
  }
  const order = async (query: Partial<ListQuery> = {}) => {
    const { sessions } = await directory.list('me', { limit: 2, ...query })
    return sessions.map(({ sessionId }) => sessionId)
  }

  // Seen before: the sessions that a restart had touched came first, on pages of their own.
  it('keeps its order when a restart takes up sessions again', async () => {
    await happen('session-3', 'user:message', { turnId: 't1', text: 'first' })
    await happen('session-5', 'user:message', { turnId: 't1', text: 'second' })
    await fake.store.sessions.acquire('session-9', 'here', 1000)
    await happen('session-9', 'tool:result', { callId: 'c', isError: true, content: [], interruptedBy: 'server' })
    expect(await order()).not.toContain('session-9')
    await happen('session-3', 'agent:response', { turnId: 't1', text: 'answer' })
    for (const id of ids.slice(4)) await happen(id, 'user:message', { turnId: 't1', text: id })
    const last = Date.now()
    await expect.poll(() => Date.now()).toBeGreaterThan(last)
    await fake.store.sessions.acquire('session-4', 'here', 1000)
    expect(await order()).toEqual(['session-19', 'session-18'])
  })

  it('puts pinned sessions first and leaves archived ones out, until someone writes in them', async () => {
    for (const id of ids) await happen(id, 'user:message', { turnId: 't1', text: id })
    await directory.change('session-2', { isPinned: true, title: 'mine' })
    await directory.change('session-19', { isArchived: true })
    expect(await order({ archived: false })).toEqual(['session-2', 'session-18'])
    const first = await directory.list('me', { limit: 1, archived: false })
    expect(first).toMatchObject({ total: ids.length - 1, sessions: [{ title: 'mine', isPinned: true }] })
    expect(await order({ archived: false, before: first.next ?? '' })).toEqual(['session-18', 'session-17'])
    expect(await order({ archived: true })).toEqual(['session-19'])
    expect((await directory.list('me', { limit: 1 })).total).toBe(ids.length)
    await happen('session-19', 'user:message', { turnId: 't2', text: 'again' })
    await directory.change('session-2', { isPinned: false })
    expect(await order({ archived: false })).toEqual(['session-19', 'session-18'])
    expect(await order({ archived: true })).toEqual([])
  })

  it('names a session after its first words, without half a character', async () => {
    await happen('session-1', 'user:message', { turnId: 't1', text: `${'a'.repeat(59)}😀 and more\nbelow` })
    expect((await directory.summary('session-1')).title).toBe('a'.repeat(59))
  })

  it('never replaces a person’s title, and keeps every one of two changes at the same time', async () => {
    expect(await access.rename('session-1', 'First words', 'words')).toBe(true)
    await Promise.all([
      directory.change('session-1', { title: 'Mine' }),
      access.rename('session-1', 'By the model', 'model'),
      directory.change('session-1', { isPinned: true }),
      directory.change('session-1', { isArchived: true })
    ])
    expect(await access.rename('session-1', 'By the model, later', 'model')).toBe(false)
    const marks = { isPinned: true, isArchived: true }
    expect(await directory.summary('session-1')).toMatchObject({ title: 'Mine', ...marks })
  })

  it('calls a sandbox recycled only where a call ran in one', async () => {
    const { data, type } = asked('c')
    const message = { type: 'user:message', data: { turnId: 't1', text: 'go' } }
    const started = { type: 'tool:started', data: { callId: 'c' } }
    for (const [id, server] of [
      ['session-3', 'notes'],
      ['session-4', 'workspace']
    ] as const)
      await fake.store.events.append(id, [message, { type, data: { ...data, server } }, started])
    expect((await directory.summary('session-3')).sandbox).toBe('none')
    expect((await directory.state('session-3')).sandbox).toBe('none')
    expect((await directory.summary('session-4')).sandbox).toBe('recycled')
  })

  it('takes a session that was removed and opened again for a new one', async () => {
    const other = (await listed('me')).find(({ sessionId }) => sessionId === 'session-7')
    await directory.destroy('session-7')
    await fake.store.events.remove('session-7')
    await expect.poll(() => Date.now()).toBeGreaterThan(other?.createdAt ?? Infinity)
    await access.open('session-7', { owner: 'me' })
    await fake.chat.begin('session-7', 'demo/other')
    expect(await listed('me')).toContainEqual(expect.objectContaining({ sessionId: 'session-7', model: 'demo/other' }))
  })

  // Checked: if all are read at once, nothing else runs until the last one has been read.
  it('lets others have their turn between one conversation and the next', async () => {
    let turns = 0
    let isListed = false
    const count = () => {
      turns++
      if (!isListed) setImmediate(count)
    }
    setImmediate(count)
    await listed('me')
    isListed = true
    expect(turns).toBeGreaterThanOrEqual(ids.length)
  })
})

describe('a session that its owner deletes', () => {
  const isThere = async () => (await access.meta('session-3')) !== null
  const later = (ms: number) => vi.spyOn(fake.store.sessions, 'now').mockResolvedValue(Date.now() + ms)

  it('is hidden, and gone for good a moment later, whichever instance looks first', async () => {
    await directory.hide('session-3')
    expect((await listed('me')).map(({ sessionId }) => sessionId)).not.toContain('session-3')
    expect(await directory.summary('session-3')).toMatchObject({ isDeleted: true })
    later(20_000)
    await directory.deleted.round()
    expect(await isThere()).toBe(true)
    later(40_000)
    await directory.deleted.round()
    expect(await isThere()).toBe(false)
    expect(await fake.store.keyValues.list('deleted-sessions')).toEqual([])
  })

  it('stays if its owner brings it back, and not because something is still written in it', async () => {
    const ids = async () => (await listed('me')).map(({ sessionId }) => sessionId)
    await directory.hide('session-3')
    const [event] = await fake.store.events.append('session-3', [
      { type: 'user:message', data: { turnId: 't1', text: 'wait' } }
    ])
    const changed = new Promise((resolve) => feed.subscribe({ changed: resolve }))
    if (event) feed.stored('session-3', [event])
    await changed
    expect((await access.meta('session-3'))?.isDeleted).toBe(true)
    await directory.restore('session-3')
    later(40_000)
    await directory.deleted.round()
    expect(await ids()).toContain('session-3')
  })

  it('makes room for another one at once', async () => {
    const full = new SessionAccess(fake.store.keyValues, { MAX_OWNER_SESSIONS: 20, MAX_ADDRESS_SESSIONS: 1000 })
    await expect(full.open('one-more', { owner: 'me' })).rejects.toThrow('limit of 20 sessions')
    await directory.hide('session-3')
    await full.open('one-more', { owner: 'me' })
  })
})

describe('after the store was emptied', () => {
  it('gives up the sandboxes of sessions that no longer have an owner, with and without a tab, and no others', async () => {
    const lost: string[] = []
    feed.subscribe({ lost: (sessionId) => void lost.push(sessionId) })
    const detach = fake.chat.attach('session-2')
    await access.forget('session-2')
    feed.emptied()
    await vi.waitFor(() => expect(gaveUp).toEqual(['session-2', 'no-tab']))
    expect(lost).toEqual(['session-2'])
    detach()
  })
})
