import { expect, it, vi } from 'vitest'
import { eventually } from '../../../tests/support/eventually.ts'
import { child, LOCAL, openTestConnections } from '../../connections/connections.fixture.ts'
import { LiveServer } from '../../connections/live-server.ts'
import { silentLogger } from '../../lib/logger.ts'
import { ClientLane } from './client-lane.ts'

const uri = 'test://watched-resource'
const { signal } = new AbortController()

async function open() {
  const test = await openTestConnections({ c: child('conformance-server', ['legacy']) })
  const { connections } = test
  const standalone = { tell: () => {} }
  const lane = new ClientLane({ connections, caller: LOCAL, capabilities: {}, standalone, logger: silentLogger })
  return { ...test, lane, connection: connections.connection('c', lane.caller) }
}

it('releases a server when all watchers have left, even those that came while it started', async () => {
  const { lane, connection, close } = await open()
  try {
    await Promise.all([lane.watch('c', uri, signal), lane.watch('c', uri, signal)])
    await lane.unwatch('c', uri)
    expect(connection.busy).toBe(1)
    await lane.unwatch('c', uri)
    await eventually('the server to be let go', () => connection.busy === 0)
  } finally {
    await close()
  }
})

it('keeps the subscription for the others when the first gives up, and releases it when all do', async () => {
  const { lane, connection, close } = await open()
  try {
    const [first, other] = [new AbortController(), new AbortController()]
    const gaveUp = expect(lane.watch('c', uri, first.signal)).rejects.toThrow()
    const stays = lane.watch('c', uri, signal)
    first.abort()
    await gaveUp
    await stays
    expect(connection.busy).toBe(1)
    await lane.unwatch('c', uri)
    const second = expect(lane.watch('c', uri, other.signal)).rejects.toThrow()
    other.abort()
    await second
    await eventually('the server to be let go', () => connection.busy === 0)
  } finally {
    await close()
  }
})

it('starts a crashed server again for its subscriptions, and only for them', async () => {
  const { lane, connection, close } = await open()
  const subscribed = vi.spyOn(LiveServer.prototype, 'subscribe')
  try {
    await lane.watch('c', uri, signal)
    const first = connection.live?.pid ?? 0
    process.kill(first, 'SIGKILL')
    await eventually('the second subscription', () => subscribed.mock.calls.length === 2)
    const { live } = connection
    expect(live?.pid).not.toBe(first)
    await lane.unwatch('c', uri)
    process.kill(live?.pid ?? 0, 'SIGKILL')
    await live?.crashed
    expect(connection.live).toBeUndefined()
  } finally {
    await close()
  }
})

// Checked: if every question is passed on, 5,000 wait, each with its own timer.
it('limits the questions that a server may ask a client at once', async () => {
  const { connections, close } = await openTestConnections({ c: child('steady') })
  try {
    const ask = vi.fn(() => new Promise<never>(() => {}))
    const standalone = { tell: () => {}, ask }
    const capabilities = { elicitation: {} }
    const lane = new ClientLane({ connections, caller: LOCAL, capabilities, standalone, logger: silentLogger })
    let refused = 0
    for (let times = 0; times < 5000; times++) {
      lane.onRequest('c', { method: 'elicitation/create', params: {} }, signal, () => {}).catch(() => refused++)
    }
    await eventually('the answers', () => refused + ask.mock.calls.length >= 5000)
    expect(ask.mock.calls.length).toBeLessThanOrEqual(100)
  } finally {
    await close()
  }
})

it('passes on the question of a call whose server was removed from the registry meanwhile', async () => {
  const { connections, index, close } = await openTestConnections({ c: child('steady') })
  try {
    const standalone = { tell: () => {}, ask: async () => ({ action: 'accept' }) }
    const capabilities = { elicitation: {} }
    const lane = new ClientLane({ connections, caller: LOCAL, capabilities, standalone, logger: silentLogger })
    index.update({ servers: new Map(), problems: [] })
    const asked = lane.onRequest('c', { method: 'elicitation/create', params: {} }, signal, () => {})
    expect(await asked).toEqual({ action: 'accept' })
  } finally {
    await close()
  }
})
