import fc from 'fast-check'
import { expect, it } from 'vitest'
import { earlierText, replacedText } from './replaced-text.ts'

it('gives the earlier text back from the new one and what was kept', () => {
  const line = fc.constantFrom('', 'a', 'b', '🤖', '🤘', 'a b')
  const text = fc.array(line, { maxLength: 8 }).map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(text, text, (before, after) => {
      const kept = replacedText(before, after)
      expect(earlierText(kept, after)).toBe(before)
      expect(kept.text.isWellFormed()).toBe(true)
    }),
    { numRuns: 2000 }
  )
})

it('keeps only the lines that changed', () => {
  const lines = Array.from({ length: 1000 }, (_, at) => `line ${at}`)
  const kept = replacedText(lines.join('\n'), lines.with(500, 'new').join('\n'))
  expect(kept.text).toBe('line 500\n')
})

it('refuses a record that does not fit', () => {
  expect(earlierText({ is: 'text', head: 3, tail: 3, text: '' }, 'abc')).toBeUndefined()
})
