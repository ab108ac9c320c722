import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { SessionSummary, SessionsReply } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { useSessions } from './sessions.ts'

const summary: SessionSummary = {
  ...{ sessionId: 'deleted-since', title: 'old', model: null, createdAt: 0, activeAt: 0 },
  ...{ sandbox: 'none', recycleInMs: null, pendingApprovals: 0, isPinned: false, isArchived: false }
}
beforeEach(() => setActivePinia(createPinia()))
afterEach(() => vi.restoreAllMocks())

it('lists no session again that was deleted, though an older answer comes late', async () => {
  const late = Promise.withResolvers<SessionsReply>()
  const page = (sessions: SessionSummary[]) => ({ sessions, next: null, total: sessions.length })
  vi.spyOn(api, 'sessions').mockReturnValueOnce(late.promise).mockResolvedValueOnce(page([]))
  const sessions = useSessions()
  const first = sessions.load()
  await sessions.load()
  late.resolve(page([summary]))
  await first
  expect(sessions.list).toEqual([])
})

it('lists every session once, though one becomes active while the list is scrolled', async () => {
  const ids = Array.from({ length: 120 }, (_, at) => `s${at}`)
  vi.spyOn(api, 'sessions').mockImplementation(async ({ limit, ...query }) => {
    const from = 'before' in query ? ids.indexOf(String(query.before)) + 1 : 0
    const shown = ids.slice(from, from + limit)
    const next = from + limit < ids.length ? (shown.at(-1) ?? null) : null
    return { sessions: shown.map((sessionId) => ({ ...summary, sessionId })), next, total: ids.length }
  })
  vi.spyOn(api, 'session').mockRejectedValue(new Error('The session is not stored yet.'))
  const sessions = useSessions()
  await sessions.load()
  expect(sessions.list).toHaveLength(50)
  ids.splice(60, 1)
  ids.unshift('s60')
  await sessions.loadMore()
  expect(sessions.list.map(({ sessionId }) => sessionId)).toEqual(ids.slice(0, 100))
  await sessions.loadMore()
  expect(sessions.list.map(({ sessionId }) => sessionId)).toEqual(ids)
})
