import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { KubeConfig } from '@kubernetes/client-node'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { openExec } from './open-exec.ts'

const server = createServer()
const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'v5.channel.k8s.io' })
let upgrades = 0
let mayAnswer: Promise<void>

beforeEach(async () => {
  upgrades = 0
  mayAnswer = Promise.resolve()
  server.removeAllListeners('upgrade').on('upgrade', async (request, socket, head) => {
    upgrades += 1
    socket.on('error', () => {})
    await mayAnswer
    sockets.handleUpgrade(request, socket, head, () => {})
  })
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterEach(() => {
  for (const client of sockets.clients) client.terminate()
  server.closeAllConnections()
  server.close()
})

function config(): KubeConfig {
  const made = new KubeConfig()
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  made.loadFromClusterAndUser({ name: 'x', server: address, skipTLSVerify: true }, { name: 'x', token: 'x' })
  return made
}

const request = { namespace: 'x', pod: 'x', container: 'x', command: ['true'] }

it('opens a stream', async () => {
  const stream = await openExec(config(), request, new AbortController().signal)
  expect(sockets.clients.size).toBe(1)
  stream.destroy()
})

it('opens no stream for a caller who gave up while the credentials were fetched', async () => {
  const { promise: fetched, resolve } = Promise.withResolvers<void>()
  const slow = config()
  slow.applyToHTTPSOptions = async () => fetched
  const controller = new AbortController()
  const opening = openExec(slow, request, controller.signal)
  controller.abort(new Error('too late'))
  resolve()
  await expect(opening).rejects.toThrow('too late')
  // A request of ours that is answered now proves that no earlier one is on its way.
  const stream = await openExec(config(), request, new AbortController().signal)
  expect(upgrades).toBe(1)
  stream.destroy()
})

it('leaves no stream open for a caller who gave up while it was opened', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  mayAnswer = promise
  const controller = new AbortController()
  const opening = openExec(config(), request, controller.signal)
  await expect.poll(() => upgrades).toBe(1)
  controller.abort(new Error('too late'))
  await expect(opening).rejects.toThrow('too late')
  resolve()
  await expect.poll(() => sockets.clients.size).toBe(0)
})
