import { expect, it } from 'vitest'
import { fakeKeyValueStore } from '../fake-key-value-store.ts'
import { StoreFormat } from './store-format.ts'

function store() {
  const keyValues = fakeKeyValueStore()
  const living = new Set<string>()
  const start = async (instanceId: string, format: number) => {
    const opened = new StoreFormat({ keyValues, sessions: { instances: async () => [...living] }, instanceId, format })
    await opened.announce()
    living.add(instanceId)
    return opened
  }
  return { keyValues, living, start }
}

it('writes what is new only when every living instance can read it', async () => {
  const { living, start } = store()
  living.add('of an earlier version')
  const fresh = await start('new', 2)
  expect(await fresh.mayWrite(1)).toBe(false)
  const between = await start('between', 1)
  living.delete('of an earlier version')
  expect([await fresh.agreed(), await between.agreed()]).toEqual([1, 1])
  expect([await fresh.mayWrite(1), await fresh.mayWrite(2)]).toEqual([true, false])
  living.delete('between')
  expect(await fresh.mayWrite(2)).toBe(true)
})

it('does not start on a store with something that it can not read, however the instances ended', async () => {
  const { living, start } = store()
  expect(await (await start('new', 2)).mayWrite(2)).toBe(true)
  living.clear()
  await expect(start('old', 1)).rejects.toMatchObject({ code: 'store_too_new' })
  await start('again', 2)
})

it('does not write if an older instance starts at the same moment', async () => {
  const { keyValues, living, start } = store()
  const fresh = await start('new', 2)
  const add = keyValues.add.bind(keyValues)
  keyValues.add = async (...all) => {
    living.add('started meanwhile')
    return add(...all)
  }
  expect(await fresh.mayWrite(2)).toBe(false)
})

it('forgets the instances that are gone', async () => {
  const { keyValues, living, start } = store()
  await start('one', 2)
  living.clear()
  await start('two', 2)
  expect((await keyValues.list('store-format')).map(({ key }) => key)).toEqual(['two'])
})
