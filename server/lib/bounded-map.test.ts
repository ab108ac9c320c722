import { expect, it } from 'vitest'
import { BoundedMap } from './bounded-map.ts'

it('drops the entry that was set longest ago, and says which', () => {
  const dropped: number[] = []
  const map = new BoundedMap<string, number>(2, (value) => dropped.push(value))
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4)
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4]
  ])
  expect(dropped).toEqual([2])
})
