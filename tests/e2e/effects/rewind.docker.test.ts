/** Rewinds and branches on the real engine, as a client of the socket and the HTTP API sees them. */
import { afterAll, expect, it } from 'vitest'
import type { RevertPlanReply, VersionsReply } from '../../../contract/effects/effect-replies.ts'
import type { Snapshot } from '../../../contract/live.ts'
import type { Client } from '../../support/client.ts'
import { serve, stopServers } from '../../support/serve.ts'

afterAll(stopServers)

async function entriesOf(client: Client) {
  const from = client.seen.length
  await client.ask('session:snapshot')
  return ((await client.snapshot(from)) as Snapshot).transcript.entries
}
const messages = async (client: Client) =>
  (await entriesOf(client)).flatMap((entry) =>
    entry.kind === 'user' ? [`${entry.rewound ? '- ' : ''}${entry.text}`] : []
  )

it('takes a conversation back, also after kill -9, and branches from it with the files of then', async () => {
  const server = await serve()
  const client = server.connect('rewind')
  const { token } = await client.ready()
  await client.sh('echo one > one.txt')
  await client.sh('rm one.txt; echo two > two.txt')
  const [, second] = (await entriesOf(client)).filter(({ kind }) => kind === 'user')
  const from = second?.seq ?? 0

  const branched = await fetch(`${server.url}/api/sessions/rewind/branch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-session-token': String(token) },
    body: JSON.stringify({ before: from, files: 'then' })
  })
  expect(branched.status).toBe(201)
  const branch = (await branched.json()) as { sessionId: string; token: string }
  const stranger = await fetch(`${server.url}/api/sessions/${branch.sessionId}`, {
    headers: { 'x-session-token': String(token) }
  })
  expect(stranger.status).toBe(403)
  const copy = server.connect(branch.sessionId, { token: branch.token })
  await copy.ready()
  expect(await messages(copy)).toEqual(['run echo one > one.txt'])
  expect(await copy.sh('ls; cat one.txt')).toMatch(/one\.txt\s+one/)
  expect(await client.sh('ls')).toContain('two.txt')

  // The files go back on their own, as they were shown, and that is a version too.
  const changes = `${server.url}/api/sessions/rewind/changes`
  const headers = { 'x-session-token': String(token) }
  const { versions } = (await (await fetch(changes, { headers })).json()) as VersionsReply
  const changeId = versions.find(({ files }) => files.some(({ path }) => path === 'two.txt'))?.changeId ?? ''
  const revert = await fetch(`${changes}/${encodeURIComponent(changeId)}/revert?scope=since`, { headers })
  const plan = (await revert.json()) as RevertPlanReply
  expect(plan.files.map(({ path }) => path).sort()).toEqual(['one.txt', 'two.txt'])
  expect(await client.ask('files:revert', { changeId, scope: 'since', hash: plan.hash })).toEqual({
    ok: true,
    changes: expect.anything()
  })
  expect(await client.sh('ls; cat one.txt')).toMatch(/^one\.txt\s+one/)

  // A command that runs is ended first, and the new message is in the same append.
  const [card] = await client.cards('run sleep 1000')
  await client.ask('tool:approval', { callId: card?.callId, approved: true })
  await client.wait('tool:started', ({ callId }) => callId === card?.callId)
  const text = 'run echo instead > three.txt'
  const ack = await client.ask('history:rewind', { from, message: { text, id: 'edited' } })
  expect(ack).toMatchObject({ ok: true })
  await client.wait('tool:result', ({ callId }) => callId === card?.callId)
  await client.wait('tool:approval_required', ({ turnId }) => turnId === ack.turnId)
  await server.kill9()

  const again = await serve({}, { dataDir: server.dataDir })
  const back = again.connect('rewind', { token })
  await back.ready()
  expect(await back.ask('history:rewind', { from, message: { text, id: 'edited' } })).toEqual(ack)
  expect(await messages(back)).toEqual([
    'run echo one > one.txt',
    '- run rm one.txt; echo two > two.txt',
    '- run ls',
    '- run ls; cat one.txt',
    '- run sleep 1000',
    text
  ])
  const log = await again.events('rewind')
  expect(log.filter(({ type }) => type === 'history:rewound')).toHaveLength(1)
})
