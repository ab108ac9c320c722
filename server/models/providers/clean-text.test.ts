import { expect, test } from 'vitest'
import { cleanText } from './clean-text.ts'

test.each([
  ['Incorrect API key provided: sk-proj-abcd1234efgh5678.', []],
  ['bad token: Bearer abcdefgh12345678', []],
  ['key AIzaSyA1234567890abcdef is wrong', []],
  ['my-own-secret was wrong', ['my-own-secret']],
  ['twice my-own-secret and my-own-secret', ['my-own-secret']]
])('no key is left in: %s', (text, secrets) => {
  const clean = cleanText(text, secrets)
  expect(clean).toContain('[key]')
  expect(clean).not.toMatch(/abcd1234|abcdefgh1234|AIza|my-own-secret/)
})

test('one bounded line, without controls', () => {
  const clean = cleanText(`a\n\u001b[31mred\u202e ${'x'.repeat(1_000)}`, [], 50)
  expect(clean).toHaveLength(50)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the point of the test
  expect(clean).not.toMatch(/[\u0000-\u001f\u202e]/)
})

test('an empty key hides nothing', () => {
  expect(cleanText('plain words', ['', 'a'])).toBe('plain words')
})
