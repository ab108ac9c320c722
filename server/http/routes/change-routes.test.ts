import cookie from '@fastify/cookie'
import fastify, { type FastifyInstance } from 'fastify'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ChangesReply, RevertPlanReply, VersionsReply } from '../../../contract/effects/effect-replies.ts'
import { AppError } from '../../lib/errors.ts'
import { revertFiles } from '../../sessions/chat/reverts.ts'
import { WorkspaceHistory } from '../../sessions/files/workspace-history.ts'
import { WorkspaceTransfer } from '../../sessions/files/workspace-transfer.ts'
import { type FakeSessions, fakeSessions } from '../../sessions/sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sessions/sandboxes/session-manager.ts'
import { registerChangeRoutes } from './change-routes.ts'

let world: FakeSessions
let manager: SessionManager
let server: FastifyInstance

beforeEach(async () => {
  world = await fakeSessions()
  manager = await world.start('here')
  server = fastify()
  await server.register(cookie)
  const check = async (id: string) => {
    if (id !== 's') throw new AppError('forbidden', 'forbidden', 'no')
  }
  registerChangeRoutes(server, { check }, new WorkspaceHistory(manager))
})
afterEach(async () => {
  await server.close()
  await world.close()
})

const get = (path: string, id = 's') => server.inject(`/api/sessions/${id}/changes${path}`)
const json = async <T>(path: string): Promise<T> => (await get(path)).json<T>()
const codeOf = async (path: string, id?: string) => (await get(path, id)).json<{ code: string }>().code
const write = (callId: string, path: string, content: string) =>
  manager.hold('s', (hold) => hold.runTool({ callId, name: 'write_file', args: { path, content } }))
const filesNow = () => Object.fromEntries([...world.engine.containers.values()][0]?.files ?? [])
type Wish = Omit<Parameters<typeof revertFiles>[1], 'scope'>
const revert = (wish: Wish, scope: 'one' | 'since' = 'one') =>
  manager.hold('s', (hold) => revertFiles(hold, { ...wish, scope }))

it('lists every version with its author, also by file, and downloads both sides as plain bytes', async () => {
  await write('c1', 'a', 'one')
  await write('c2', 'a', '<script>')
  await new WorkspaceTransfer(manager).replace('s', 'b', Buffer.from('mine'), null)
  const all = await json<VersionsReply>('')
  expect(all.versions.map(({ about, files }) => [about.by, about.callId, files.map(({ path }) => path)])).toEqual([
    ['person', undefined, ['b']],
    ['call', 'c2', ['a']],
    ['call', 'c1', ['a']]
  ])
  expect([all.isThinned, all.hasMore]).toEqual([false, false])
  const results = (await world.store.events.read('s')).filter(({ type }) => type === 'tool:result')
  expect(results.map(({ data }) => data.changes)).toMatchObject([
    { changeId: 'call:c1' },
    { changeId: 'call:c2', total: 1 }
  ])
  const ofA = await json<VersionsReply>('?path=a&before=call%3Ac2')
  expect(ofA.versions.map(({ changeId }) => changeId)).toEqual(['call:c1'])
  const { files } = await json<ChangesReply>('/call%3Ac2')
  expect(files).toMatchObject([{ path: 'a', before: { size: 3 }, after: { size: 8 } }])
  const before = await get('/call%3Ac2/content?path=a&side=before')
  expect(before.body).toBe('one')
  const { headers } = await get('/call%3Ac2/content?path=a&side=after')
  expect(headers).toMatchObject({ 'content-type': 'application/octet-stream', 'x-content-type-options': 'nosniff' })
  expect(headers['content-disposition']).toMatch(/^attachment/)
})

// Checked: without `sessions.check`, the versions of somebody else's session are answered.
it('refuses strangers, unknown versions and malformed requests', async () => {
  await write('c1', 'a', 'one')
  const paths = ['', '/call%3Ac1', '/call%3Ac1/revert?scope=one', '/call%3Ac1/content?path=a&side=after']
  for (const path of paths) expect(await codeOf(path, 'other'), path).toBe('forbidden')
  const wrong = {
    '/x': 'unknown_version',
    '/x/revert?scope=one': 'unknown_version',
    '?before=x': 'unknown_version',
    '/call%3Ac1/revert?scope=all': 'invalid_filter',
    '/call%3Ac1/content?path=b&side=after': 'file_refused',
    '/call%3Ac1/content?path=a&side=before': 'file_refused',
    '/call%3Ac1/content?path=a': 'invalid_filter'
  }
  for (const [path, code] of Object.entries(wrong)) expect(await codeOf(path), path).toBe(code)
})

it('undoes one version or all since, only as the person saw it, and the revert is a version that can be undone', async () => {
  await write('c1', 'a', 'one')
  await write('c2', 'b', 'two')
  await write('c3', 'a', 'three')
  const plan = (id: string, scope: string) => json<RevertPlanReply>(`/${encodeURIComponent(id)}/revert?scope=${scope}`)
  const one = await plan('call:c1', 'one')
  expect(one.files).toMatchObject([{ path: 'a', conflict: { now: { size: 5 } } }])
  await expect(revert({ changeId: 'call:c1', hash: one.hash })).rejects.toMatchObject({ code: 'changes_conflict' })
  await expect(revert({ changeId: 'call:c1', hash: 'another' })).rejects.toMatchObject({ code: 'stale' })
  expect(filesNow()).toEqual({ a: 'three', b: 'two' })
  const { hash } = await plan('call:c2', 'since')
  const undone = await revert({ changeId: 'call:c2', hash }, 'since')
  expect(filesNow()).toEqual({ a: 'one' })
  const [newest] = (await json<VersionsReply>('')).versions
  expect(newest).toMatchObject({
    changeId: undone?.id,
    about: { by: 'revert', of: 'call:c2', scope: 'since' },
    total: 2
  })
  const again = await plan(undone?.id ?? '', 'one')
  await revert({ changeId: undone?.id ?? '', hash: again.hash, paths: ['b'] })
  expect(filesNow()).toEqual({ a: 'one', b: 'two' })
})
