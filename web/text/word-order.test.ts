import { expect, it } from 'vitest'
import { wordOrder } from './word-order.ts'

it('takes each word apart that runs from right to left, and leaves the rest as it is', () => {
  expect(wordOrder('cat אא > ب1.txt')).toEqual([
    { text: 'cat ', isRtl: false },
    { text: 'אא', isRtl: true },
    { text: ' > ', isRtl: false },
    { text: 'ب', isRtl: true },
    { text: '1.txt', isRtl: false }
  ])
  expect(wordOrder('Grüße, мир 世界 👋')).toEqual([{ text: 'Grüße, мир 世界 👋', isRtl: false }])
})

it('does so for a whole book without an element for each word', () => {
  const parts = wordOrder('אב '.repeat(100_000))
  expect(parts.length).toBeLessThan(3100)
  expect(parts.at(-1)).toMatchObject({ isForced: true })
  expect(parts.map(({ text }) => text).join('')).toBe('אב '.repeat(100_000))
})

// Seen before: after fifty words, the letters of a long argument ran from left to right.
it('keeps every word of a long argument readable', () => {
  expect(wordOrder('שלום עולם '.repeat(500)).some(({ isForced }) => isForced)).toBe(false)
})
