import { expect, it } from 'vitest'
import { requestTexts, rescale, similarity, toolText } from './meaning-texts.ts'

it("embeds a tool with its server's name, once", () => {
  expect(toolText('football-api', { name: 'searchByName', description: 'Finds one' })).toBe(
    'football api search By Name: Finds one'
  )
  expect(toolText('chess', { name: 'chess', description: 'Plays' })).toBe('chess: Plays')
  expect(toolText('s', { name: 't', description: 'x'.repeat(9000) }).length).toBeLessThan(1000)
})

it('embeds a request and its clauses, with what its addresses and paths are', () => {
  expect(requestTexts('read /srv/graph.txt')).toEqual(['read a file'])
  expect(requestTexts('Please read /srv/graph.txt now. Then send an email.')).toHaveLength(3)
  expect(requestTexts('word '.repeat(5000))[0]?.length).toBeLessThan(2000)
})

it('takes the best clause of a long request', () => {
  const [x, y] = [Float32Array.of(1, 0), Float32Array.of(0, 1)]
  expect(similarity([x], x)).toBe(1)
  expect(similarity([y, y, x], x)).toBeCloseTo(0.7)
  expect(similarity([y, y, x, y], x)).toBe(1)
  expect(similarity([x], Float32Array.of(1))).toBeNaN()
})

it('brings the cosines of other models to one scale', () => {
  const values = rescale([0.7, 0.71, 0.69, 0.9])
  expect(values[3]).toBeGreaterThan(0.2)
  for (const value of values.slice(0, 3)) expect(value).toBeLessThan(0.1)
  expect(rescale([0.7, 0.7])).toEqual([0.1, 0.1])
})
