import Fastify from 'fastify'
import { expect, it } from 'vitest'
import { fakeEventLog } from '../../code/fake-event-log.ts'
import { RunIndex } from '../../code/run-index.ts'
import { RunLog } from '../../code/run-log.ts'
import { StoredRuns } from '../../code/stored-runs.ts'
import { isAppError } from '../../lib/errors.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { registerRunRoutes } from './run-routes.ts'

async function open() {
  const store = { events: fakeEventLog(), keyValues: fakeKeyValueStore() }
  const index = new RunIndex(store.keyValues)
  for (const owner of ['local', 'ann', 'ben']) {
    const program = { code: `tools.of.${owner}()`, hash: 'h', seed: 1, startedAt: 1, timeoutMs: 1000 }
    await RunLog.create(store.events, `of-${owner}`, program)
    await index.add(`of-${owner}`, {
      ...{ owner, door: 'http', home: 'x', cards: [], createdAt: 1, expiresAt: 2, status: 'waiting', holder: 'x' },
      ...{ leaseUntil: 0, endedAt: 0, head: program.code, calls: 3, reason: '' }
    })
  }
  const server = Fastify()
  server.setErrorHandler((error, _request, reply) => reply.code(isAppError(error, 'unknown_run') ? 404 : 500).send())
  const runs = new StoredRuns({ ...store, inbox: new ApprovalInbox(store.keyValues) })
  registerRunRoutes(server, { runs, ownerOf: (cookies) => cookies ?? 'local' })
  const ask = (method: 'GET' | 'POST', url: string, cookie?: string) =>
    server.inject({ method, url, headers: cookie ? { cookie } : {} })
  const listed = async (cookie?: string) =>
    (await ask('GET', '/api/runs', cookie)).json().runs.map(({ runId }: { runId: string }) => runId)
  const statusOf = async (runId: string) => (await index.get(runId))?.status
  return { ask, listed, statusOf }
}

it('lists the programs of clients without an owner, and those of the owner who asks', async () => {
  const { ask, listed } = await open()
  expect((await listed('ann')).toSorted()).toEqual(['of-ann', 'of-local'])
  expect(await listed()).toEqual(['of-local'])
  const { runs, now } = (await ask('GET', '/api/runs')).json()
  expect(runs).toMatchObject([{ door: 'http', status: 'waiting', calls: 3, head: 'tools.of.local()' }])
  expect(now).toBeGreaterThan(1)
  expect(JSON.stringify(runs)).not.toMatch(/holder|home|owner/)
})

// Checked: if the owner is not compared, the answer is 204.
it('ends only those programs', async () => {
  const { ask, listed, statusOf } = await open()
  expect((await ask('POST', '/api/runs/of-ben/cancel', 'ann')).statusCode).toBe(404)
  expect((await ask('POST', '/api/runs/of-nobody/cancel', 'ann')).statusCode).toBe(404)
  expect(await statusOf('of-ben')).toBe('waiting')
  for (const runId of ['of-ann', 'of-local'])
    expect((await ask('POST', `/api/runs/${runId}/cancel`, 'ann')).statusCode).toBe(204)
  expect(await listed('ann')).toEqual([])
})
