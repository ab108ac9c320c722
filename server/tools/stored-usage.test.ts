import { describe, expect, it } from 'vitest'
import { createLogger } from '../lib/logger.ts'
import { createRouter } from '../routing/router.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { forgetStoredSession, openStoredUsage } from './stored-usage.ts'

async function gateway(keyValues: KeyValueStore) {
  const router = createRouter()
  const usage = await openStoredUsage(keyValues, router, createLogger('silent'))
  return {
    usage,
    requests: () => router.usage().map(({ request }) => request),
    owners: () => router.usage().map(({ owner }) => owner)
  }
}

describe('what is learnt from use', () => {
  it('is there after a restart', async () => {
    const keyValues = fakeKeyValueStore()
    const before = await gateway(keyValues)
    before.usage.learn('mail the report', 'post', 'send', 'ann')
    await before.usage.flush()
    const after = await gateway(keyValues)
    expect(after.requests()).toEqual(['mail the report'])
    expect(after.owners()).toEqual(['ann'])
  })

  it.each([
    'log in with password is hunter2',
    'use the token: abc',
    'push with ghp_abcdefghij0123456789',
    'open postgres://me:hunter2@db/x',
    'get item 4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c',
    "set the key 'abc'"
  ])('is nothing where the request names a secret: %s', async (request) => {
    const { usage, requests } = await gateway(fakeKeyValueStore())
    usage.learn(request, 'a', 'x', 'local')
    usage.learn('turn the key on the keyboard', 'a', 'y', 'local')
    expect(requests()).toEqual(['turn the key on the keyboard'])
  })

  it('is kept from gateways that save at the same moment, and each uses what the others have learnt', async () => {
    const keyValues = fakeKeyValueStore()
    const gateways = await Promise.all(Array.from({ length: 5 }, () => gateway(keyValues)))
    for (const [at, { usage }] of gateways.entries()) usage.learn(`request ${at}`, 'a', 'x', 'local')
    await Promise.all(gateways.map(({ usage }) => usage.flush()))
    const all = gateways.map((_, at) => `request ${at}`)
    expect((await gateway(keyValues)).requests().toSorted()).toEqual(all)
    for (const { usage, requests } of gateways) {
      usage.learn('not saved yet', 'a', 'x', 'local')
      await usage.refresh()
      expect(requests()).toEqual(expect.arrayContaining([...all, 'not saved yet']))
    }
  })

  it('is kept from both of two gateways on one store', async () => {
    const keyValues = fakeKeyValueStore()
    const [one, two] = [await gateway(keyValues), await gateway(keyValues)]
    one.usage.learn('first', 'a', 'x', 'local')
    two.usage.learn('second', 'b', 'y', 'local')
    await one.usage.flush()
    await two.usage.flush()
    expect((await gateway(keyValues)).requests()).toEqual(['first', 'second'])
  })

  it('stays forgotten when another gateway, which still knows it, saves', async () => {
    const keyValues = fakeKeyValueStore()
    const running = await gateway(keyValues)
    running.usage.learn('secret plan', 'a', 'x', 'local')
    await running.usage.flush()
    const clearing = await gateway(keyValues)
    expect(clearing.requests()).toEqual(['secret plan'])
    await clearing.usage.forget()
    expect(clearing.requests()).toEqual([])
    await new Promise<void>((done) => {
      const started = Date.now()
      const wait = () => (Date.now() > started ? done() : setImmediate(wait))
      wait()
    })
    running.usage.learn('later', 'a', 'x', 'local')
    await running.usage.flush()
    expect(running.requests()).toEqual(['later'])
    expect((await gateway(keyValues)).requests()).toEqual(['later'])
  })

  it('is bounded', async () => {
    const keyValues = fakeKeyValueStore()
    const { usage } = await gateway(keyValues)
    for (let at = 0; at < 2100; at += 1) usage.learn(`request ${at}`, 'a', 'x', 'local')
    await usage.flush()
    const kept = (await gateway(keyValues)).requests()
    expect(kept).toHaveLength(2000)
    expect(kept.at(-1)).toBe('request 2099')
  })

  it('ignores broken rows in the store', async () => {
    const keyValues = fakeKeyValueStore()
    await keyValues.set('routing-usage', 'examples', [
      1,
      { request: 'x' },
      { request: 'ok', server: 's', tool: 't', at: 1 }
    ])
    expect((await gateway(keyValues)).requests()).toEqual(['ok'])
  })

  // Checked: if sessions are not compared, the request of the deleted one is still there.
  it('in a chat is forgotten with its session, also if it is about to be saved', async () => {
    const keyValues = fakeKeyValueStore()
    const one = await gateway(keyValues)
    one.usage.learn('book a doctor', 'health', 'book', 'ann', 'deleted')
    one.usage.learn('mail the report', 'post', 'send', 'ann', 'kept')
    one.usage.learn('over the gateway', 'post', 'send', 'ann')
    await one.usage.flush()
    const two = await gateway(keyValues)
    two.usage.learn('call the doctor', 'health', 'call', 'ann', 'deleted')
    const saved = two.usage.flush()
    await two.usage.forgetSession('deleted')
    await saved
    const kept = ['mail the report', 'over the gateway']
    expect([two.requests(), (await gateway(keyValues)).requests()]).toEqual([kept, kept])
    await forgetStoredSession(keyValues, 'kept')
    expect((await gateway(keyValues)).requests()).toEqual(['over the gateway'])
  })
})

it('lets nobody push out what others have taught, however much they teach', async () => {
  const keyValues = fakeKeyValueStore()
  const one = await gateway(keyValues)
  for (let at = 0; at < 3; at += 1) one.usage.learn(`mail ${at}`, 'post', 'send', 'ann')
  for (let at = 0; at < 2500; at += 1) one.usage.learn(`request ${at}`, 'a', 'x', 'bob')
  await one.usage.flush()
  const again = await gateway(keyValues)
  expect(again.owners().filter((owner) => owner === 'ann')).toHaveLength(3)
  expect(again.requests()).toHaveLength(2000)
  expect(again.requests()).toContain('request 2499')
})
