import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonFault } from './json-fault.ts'

it.each([
  ['{"a": 1,}', 'line 1, column 9: a name in double quotes is missing here'],
  ['{\n  "a": 1\n  "b": 2\n}', 'line 3, column 3: a comma or } is missing here'],
  ["{'a': 1}", 'line 1, column 2: a name in double quotes, or }, is missing here'],
  ['{"a": [1, 2', 'line 1, column 12: the text ends too early; a comma or ] is missing here'],
  ['{"a" 1}', 'line 1, column 6: a colon is missing here'],
  ['{"a": tru}', 'line 1, column 7: a value is missing here'],
  ['{"a": "x\ny"}', 'line 1, column 7: this text does not end, or has a character that must be escaped'],
  ['{} x', 'line 1, column 4: nothing may follow here'],
  ['', 'line 1, column 1: the text ends too early; a value is missing here']
])('finds the fault in %j', (text, fault) => {
  expect(jsonFault(text)).toBe(fault)
})

it('finds a fault exactly where there is one', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '"', 'x', ' '), (json, at, change) => {
      const text = json.slice(0, at % json.length) + change + json.slice((at % json.length) + 1)
      let isValid = true
      try {
        JSON.parse(text)
      } catch {
        isValid = false
      }
      expect(jsonFault(text) === null).toBe(isValid)
    })
  )
  expect(jsonFault(`${'['.repeat(100_000)}`)).toContain('ends too early')
})
