import { UriTemplate } from '@modelcontextprotocol/server'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { templateMatcher } from './template-matcher.ts'

const fits = (template: string, uri: string) => templateMatcher(template)?.(uri)

it('matches the URIs of a template', () => {
  const path = 'repo://{owner}/{repo}/contents{/path*}'
  expect(fits(path, 'repo://ann/tools/contents/a')).toBe(true)
  expect(fits(path, 'repo://ann/tools/contents/a,b')).toBe(true)
  expect(fits(path, 'repo://ann/tools/contents')).toBe(false)
  expect(fits('x://{a}', 'x://b/c')).toBe(false)
  expect(fits('x://{+a}', 'x://b/c')).toBe(true)
  // The value of the first must not end at the first slash.
  expect(fits('x://{+a}/{b}', 'x://1/2/3')).toBe(true)
  expect(fits('x://q{?from,to}', 'x://q?from=1&to=2')).toBe(true)
  expect(fits('x://q{?from,to}', 'x://q?from=1')).toBe(false)
})

it('agrees with the SDK wherever the SDK finishes', () => {
  const part = fc.constantFrom('a', '/', ',', 'x:', '&b=', '{v}', '{+v}', '{/v}', '{.v}', '{?v,w}', '{&v}')
  const template = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(''))
  const uri = fc.array(fc.constantFrom('a', '/', ',', '.', 'x:', '&b=', '?v=', '&w=', '&v='), { maxLength: 8 })
  fc.assert(
    fc.property(template, uri, (text, pieces) => {
      const one = pieces.join('')
      expect(fits(text, one)).toBe(new UriTemplate(text).match(one) !== null)
    }),
    { numRuns: 3000 }
  )
})

// Checked: with the SDK's matcher, matching does not end within 20 s, and `{+}` throws a TypeError.
it('is fast on a hostile template, and on one without a name', () => {
  expect(fits(`${'{+a}'.repeat(8)}!`, `x://${'a'.repeat(1900)}`)).toBe(false)
  expect(fits(`{+a}${'a{+b}'.repeat(7)}!`, 'a'.repeat(2000))).toBe(false)
  const refused = [`${'{+a}'.repeat(16)}!`, '{+}', '{}', '{a,}', '{', 'x{a', '{a{b}}', 'x'.repeat(1000)]
  expect(refused.map(templateMatcher)).toEqual(refused.map(() => undefined))
})
