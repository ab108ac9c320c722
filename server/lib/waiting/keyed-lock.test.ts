import { expect, it } from 'vitest'
import { KeyedLock } from './keyed-lock.ts'

it('runs the jobs of a key in order, those of others side by side, and keeps nothing afterwards', async () => {
  const lock = new KeyedLock()
  const seen: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = lock.run('a', async () => {
    await gate.promise
    seen.push('a1')
    throw new Error('broken')
  })
  const second = lock.run('a', async () => void seen.push('a2'))
  await lock.run('b', async () => void seen.push('b'))
  gate.resolve()
  await expect(first).rejects.toThrow('broken')
  await second
  expect(seen).toEqual(['b', 'a1', 'a2'])
  expect(lock.size).toBe(0)
})
