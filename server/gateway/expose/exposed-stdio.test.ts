import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import { expect, it } from 'vitest'
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
