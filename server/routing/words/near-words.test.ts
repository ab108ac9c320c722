import { expect, it } from 'vitest'
import { createNearWords } from './near-words.ts'

function book(...terms: string[]) {
  const near = createNearWords()
  for (const term of terms) near.add(term)
  return near
}

it('finds typing errors and compounds, the most similar first, never the word itself', () => {
  const near = book('repositori', 'reposit', 'report', 'weather')
  const found = near.near('repozitori', 0.3).map(({ term }) => term)
  expect(found[0]).toBe('repositori')
  expect(found).not.toContain('weather')
  expect(book('weather').near('weather', 0)).toEqual([])
})

it('similarity is between 0 and 1 and symmetric', () => {
  const one = book('calendar').near('calender', 0)[0]?.similarity ?? -1
  const other = book('calender').near('calendar', 0)[0]?.similarity ?? -2
  expect(one).toBeCloseTo(other)
  expect(one).toBeGreaterThan(0.5)
  expect(one).toBeLessThanOrEqual(1)
})

it('forgets a removed word, ignores short ones and pairs', () => {
  const near = book('weather', 'abc', 'two words')
  near.remove('weather')
  expect(near.near('wether', 0)).toEqual([])
  expect(near.near('abcd', 0)).toEqual([])
  expect(near.near('words', 0)).toEqual([])
})
