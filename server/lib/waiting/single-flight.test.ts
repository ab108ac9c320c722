import { expect, it } from 'vitest'
import { Lazy } from './lazy.ts'
import { SingleFlight } from './single-flight.ts'

it('a single flight shares the run that is under way, and starts another one after it', async () => {
  let runs = 0
  const flight = new SingleFlight<number>()
  const job = async () => ++runs
  expect(await Promise.all([flight.run(job), flight.run(job)])).toEqual([1, 1])
  expect(flight.running).toBeUndefined()
  expect(await flight.run(job)).toBe(2)
})

it('a lazy value is opened once, and again only after a failure', async () => {
  let runs = 0
  const lazy = new Lazy(async () => {
    runs += 1
    if (runs === 1) throw new Error('not yet')
    return runs
  })
  expect(lazy.opened).toBeUndefined()
  await expect(lazy.get()).rejects.toThrow('not yet')
  expect(await Promise.all([lazy.get(), lazy.get(), lazy.opened])).toEqual([2, 2, 2])
})
