import { expect, it } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import { child, LOCAL, openTestConnections, until } from '../../tools/connections/connections.fixture.ts'
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

it('lets a server go when all that watched the same have left, also those that came while it started', async () => {
  const { lane, connection, close } = await open()
  try {
    await Promise.all([lane.watch('c', uri, signal), lane.watch('c', uri, signal)])
    await lane.unwatch('c', uri)
    expect(connection.busy).toBe(1)
    await lane.unwatch('c', uri)
    await until('the server to be let go', () => connection.busy === 0)
  } finally {
    await close()
  }
})

it('subscribes for those who stay when the first gives up, and holds nothing when all do', async () => {
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
    await until('the server to be let go', () => connection.busy === 0)
  } finally {
    await close()
  }
})
