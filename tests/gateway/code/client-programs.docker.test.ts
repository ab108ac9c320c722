/** A person ends programs of an outside client: a real stdio gateway runs them, a real server on the same store shows them. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { RunsReply } from '../../../contract/rest.ts'
import { child } from '../../../server/connections/connections.fixture.ts'
import { eventually } from '../../support/eventually.ts'
import { type GatewayProcess, startGateway } from '../../support/gateway-process.ts'
import { serve, stopServers } from '../../support/serve.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

let gateway: GatewayProcess | undefined
afterEach(async () => {
  await gateway?.end()
  await stopServers()
})

it('shows the programs of a stdio gateway in a server on its store, and ends them there', {
  timeout: 180_000
}, async () => {
  const served = await serve({})
  const count = join(temporaryFolder(), 'count')
  const env = { DATA_DIR: served.dataDir }
  gateway = await startGateway({ steady: child('steady', [count]) }, { args: ['--code'], env })
  const run = async (args: Record<string, unknown>) =>
    (await gateway?.client.callTool({ name: 'run_code', arguments: args }, { timeout: 100_000 }))
      ?.structuredContent as {
      status: string
      runId: string
    }
  const listed = async () => ((await (await fetch(`${served.url}/api/runs`)).json()) as RunsReply).runs
  const cancel = async (runId: string) =>
    (await fetch(`${served.url}/api/runs/${runId}/cancel`, { method: 'POST' })).status

  const waiting = await run({
    code: "await tools.steady.echo({ message: 'a' })\nawait tools.steady.write({ message: 'b' })"
  })
  expect(waiting.status).toBe('waiting')
  const reads = run({
    code: "for (;;) { await tools.steady.echo({ message: 'x' }); await new Promise((done) => setTimeout(done, 500)) }"
  })
  await eventually('the calls of both', async () => (await listed()).filter(({ calls }) => calls > 1).length === 2)
  const [first, second] = await listed()
  expect(first).toMatchObject({
    ...{ runId: waiting.runId, door: 'stdio', status: 'waiting', reason: '1 call waits for approval.', calls: 2 },
    head: expect.stringContaining('tools.steady.write')
  })
  expect(second).toMatchObject({ status: 'running', client: first?.client })

  expect(await cancel(waiting.runId)).toBe(204)
  expect(await cancel(second?.runId ?? '')).toBe(204)
  expect(await listed()).toEqual([])
  // The client of a running program gets its answer at once.
  expect(await reads).toMatchObject({ status: 'cancelled', runId: second?.runId })
  expect(await run({ runId: waiting.runId })).toMatchObject({ status: 'cancelled' })
  expect(existsSync(count) ? readFileSync(count, 'utf8') : '').not.toContain('b')
  expect(await (await fetch(`${served.url}/api/approvals`)).json()).toMatchObject({ approvals: [] })
  expect(await cancel('nothing')).toBe(404)
})
