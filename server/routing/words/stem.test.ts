import { expect, it } from 'vitest'
import { stem } from './stem.ts'

it.each([
  ['translate', 'translates', 'translating', 'translation', 'translator'],
  ['create', 'creates', 'created', 'creating'],
  ['delete', 'deletes', 'deleting'],
  ['hop', 'hopping', 'hopped'],
  ['directory', 'directories'],
  ['query', 'queries'],
  ['conversion', 'conversions'],
  ['happy', 'happiness'],
  ['relational', 'relate']
])('gives the forms of %s one stem', (word, ...forms) => {
  for (const form of forms) expect(stem(form)).toBe(stem(word))
})

it.each(['caress', 'sky', 'feed', 'as', 'a', '', '42', 'été', 'k8s', 'red', 'sing'])('leaves %s alone', (word) => {
  expect(stem(word)).toBe(word)
})

it('distinguishes words that only begin alike', () => {
  expect(stem('relation')).not.toBe(stem('relax'))
  expect(stem('sing')).not.toBe(stem('sign'))
})
