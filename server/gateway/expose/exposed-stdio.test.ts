import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import { expect, it, vi } from 'vitest'
import { noAudit } from '../../audit/audit.fixture.ts'
import { openTestConnections } from '../../connections/connections.fixture.ts'
import { silentLogger } from '../../lib/logger.ts'
import { Exposed } from './exposed.ts'
import { ExposedStdio } from './exposed-stdio.ts'

// Checked: if nobody handles the promise, an unhandled rejection ends the process.
it('survives a failed subscription, and passes the request on', async () => {
  const stdio = new ExposedStdio(() => Promise.reject(new Error('broken')))
  const { promise: failure, resolve } = Promise.withResolvers<Error>()
  const passed: JSONRPCMessage[] = []
  const transport: Transport = {
    start: async () => {},
    send: async () => {},
    close: async () => {},
    onerror: resolve,
    onmessage: (message) => void passed.push(message)
  }
  stdio.tap(transport)
  const params = { notifications: { resourceSubscriptions: ['x://y'] } }
  transport.onmessage?.({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params })
  transport.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
  expect((await failure).message).toBe('broken')
  expect(passed.length).toBe(2)
})

it.each([
  ['greets a client of all servers before those that were never seen have answered', undefined, true],
  ['waits for a single server, whose instructions are in the greeting', 'slow', false]
])('%s', async (_what, only, isGreeted) => {
  const test = await openTestConnections({ slow: { command: 'none' } })
  const core = { ...test, policy: () => 'allow' as const, audit: noAudit, learn: () => {} }
  const exposed = new Exposed({ only, core, version: '1', logger: silentLogger })
  const listed = Promise.withResolvers<void>()
  const discover = vi.spyOn(exposed, 'discoverServers').mockReturnValue(listed.promise)
  const stdio = new ExposedStdio(async () => exposed)
  let greeted = false
  const created = stdio.createServer({ era: 'legacy' }).then(() => {
    greeted = true
  })
  await vi.waitFor(() => expect(discover).toHaveBeenCalled())
  await new Promise(setImmediate)
  expect(greeted).toBe(isGreeted)
  listed.resolve()
  await created
  stdio.close()
  await test.close()
})
