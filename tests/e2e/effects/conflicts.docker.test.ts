/** A person edits a file through the HTTP API while a fork's change of the same file waits for the decision. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ChangeSide, ChangesReply, VersionsReply } from '../../../contract/effects/effect-replies.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'

let server: Served
beforeAll(async () => {
  server = await serve({ WARM_POOL_SIZE: '1' })
}, 120_000)
afterAll(stopServers)

async function open(mode: 'preview' | 'review') {
  const id = `conflict-${randomUUID()}`
  const client = server.connect(id)
  const { token } = await client.ready()
  await client.snapshot()
  expect(await client.ask('mode:select', { mode })).toEqual({ ok: true })
  const http = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}/api/sessions/${id}/${path}`, { ...init, headers: { 'x-session-token': String(token) } })
  return {
    client,
    changes: async (changeId: string) => (await (await http(`changes/${changeId}`)).json()) as ChangesReply,
    versions: async () => ((await (await http('changes?path=a.txt')).json()) as VersionsReply).versions,
    content: async (changeId: string, side: ChangeSide) =>
      (await http(`changes/${changeId}/content?path=a.txt&side=${side}`)).text(),
    read: async () => (await http('file?path=a.txt')).text(),
    write: async (body: string) => expect((await http('file?path=a.txt', { method: 'PUT', body })).status).toBe(204)
  }
}

it.each([
  ['preview', 'fork'],
  ['preview', 'workspace'],
  ['review', 'fork'],
  ['review', 'workspace']
] as const)(
  'in the mode %s, overwrites nothing unseen, and with the choice "%s" the history has all that the person wrote',
  async (mode, choice) => {
    const { client, changes, versions, content, read, write } = await open(mode)
    await write('first\n')
    await client.ask('message', 'run echo fork > a.txt; echo other > b.txt')
    const shown = await client.wait(mode === 'preview' ? 'tool:previewed' : 'review:opened')
    const { changeId, hash } = shown.changes as { changeId: string; hash: string }
    await write('person\n')

    const decide = (more: object) =>
      mode === 'preview'
        ? client.ask('tool:approval', { callId: shown.callId, approved: true, hash: shown.hash, ...more })
        : client.ask('review:decide', { reviewId: shown.reviewId, hash, accept: 'all', ...more })
    expect(await decide({})).toMatchObject({ ok: false, error: { code: 'changes_conflict' } })
    const waiting = (await changes(changeId)).files.find(({ path }) => path === 'a.txt')
    expect(waiting).toMatchObject({ conflict: { now: { type: 'file', size: 7 } } })
    expect([await content(changeId, 'after'), await read()]).toEqual(['fork\n', 'person\n'])

    const choices = { 'a.txt': choice }
    const seen = String(waiting?.conflict?.seen)
    await write('person again\n')
    expect(await decide({ choices, seenConflicts: { 'a.txt': seen } })).toMatchObject({ error: { code: 'stale' } })
    const now = (await changes(changeId)).files.find(({ path }) => path === 'a.txt')
    expect(await decide({ choices, seenConflicts: { 'a.txt': now?.conflict?.seen } })).toEqual({ ok: true })
    await client.wait(mode === 'preview' ? 'tool:result' : 'review:applied')

    expect(await read()).toBe(choice === 'fork' ? 'fork\n' : 'person again\n')
    const ids = (await versions()).map((version) => version.changeId)
    const texts = await Promise.all(ids.map(async (id) => [await content(id, 'before'), await content(id, 'after')]))
    expect(texts.map(([, after]) => after)).toEqual([
      ...(choice === 'fork' ? ['fork\n'] : []),
      ...['person again\n', 'person\n', 'first\n']
    ])
    if (choice === 'fork') expect(texts[0]?.[0]).toBe('person again\n')
  }
)
