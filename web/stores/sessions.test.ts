import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { SessionSummary, SessionsReply } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { useSessions } from './sessions.ts'

const summary: SessionSummary = {
  ...{ sessionId: 'deleted-since', title: 'old', model: null, createdAt: 0, activeAt: 0 },
  ...{ sandbox: 'none', recycleInMs: null, pendingApprovals: 0 }
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
