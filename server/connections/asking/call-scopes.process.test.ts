import { afterEach, expect, it } from 'vitest'
import { child, openTestConnections, type TestConnections } from '../connections.fixture.ts'
import type { PeerRequest } from '../wire/call-input.ts'

let opened: TestConnections
afterEach(() => opened?.close())

const person = (owner: string) => ({ owner, door: 'chat' as const, laneId: opened.connections.chatLane })

/** A call whose question is answered when `answer` is called. */
function order(owner: string, signal = new AbortController().signal) {
  const asked = Promise.withResolvers<PeerRequest>()
  const answered = Promise.withResolvers<Record<string, unknown>>()
  const result = opened.call(
    'shop',
    'order',
    {},
    {
      caller: person(owner),
      mustNotRepeat: true,
      signal,
      onRequest: (request) => {
        asked.resolve(request)
        return answered.promise
      }
    }
  )
  result.catch(() => {})
  return { asked: asked.promise, answer: answered.resolve, result }
}
const textOf = (result: unknown) => JSON.stringify(result)

// Checked: if the owners of running calls are not compared, the question of one person's call reaches the other person.
it('asks the person whose call runs, and nobody if the calls of two people run', async () => {
  opened = await openTestConnections({ shop: child('asking') })
  const ann = order('ann')
  expect(await ann.asked).toMatchObject({ method: 'elicitation/create' })
  const bob = order('bob')
  expect(textOf(await bob.result)).toContain('Nobody can be asked')
  ann.answer({ action: 'decline' })
  expect(textOf(await ann.result)).toContain('decline')
  const again = order('bob')
  await again.asked
  again.answer({ action: 'cancel' })
  expect(textOf(await again.result)).toContain('cancel')
})

it('asks nobody else while the server may still work on a call that was given up', async () => {
  opened = await openTestConnections({ shop: child('asking') })
  const stop = new AbortController()
  const ann = order('ann', stop.signal)
  await ann.asked
  stop.abort()
  await expect(ann.result).rejects.toThrow()
  expect(textOf(await order('bob').result)).toContain('Nobody can be asked')
  const again = order('ann')
  await again.asked
  again.answer({ action: 'decline' })
  await again.result
})

it('declares no elicitation for clients of the gateway, which nobody could answer', async () => {
  opened = await openTestConnections({ shop: child('asking') })
  expect(textOf((await opened.call('shop', 'order')).result)).toContain('Method not found')
})
