import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { asciiSource } from './ascii-source.ts'

const ASCII = /^\p{ASCII}*$/u

it('means the same in strings, templates and regular expressions, in ASCII', () => {
  for (const code of [
    `'naïve “quotes” 😀 \\– \\\\é'`,
    '`line – é😀`',
    `'a–b é😀c'.replace(/[–é]|\\–/g, '#').replace(/[😀-😎]/u, '!')`,
    `/* comment – */ { Ünder: 'é' }.Ünder`.replace('{', '({').replace('}.', '}).')
  ]) {
    const ascii = asciiSource(code)
    expect(ascii).toMatch(ASCII)
    expect(runInNewContext(ascii)).toEqual(runInNewContext(code))
  }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const ascii = asciiSource(JSON.stringify(text))
      return ASCII.test(ascii) && runInNewContext(ascii) === text
    })
  )
  expect(() => asciiSource('String.raw`é`')).toThrow(/String\.raw/)
})

it('is how the bundles are written', () => {
  for (const name of ['main.mjs', 'gateway.mjs', 'workspace-server.mjs']) {
    const source = readFileSync(new URL(`../dist/${name}`, import.meta.url), 'latin1')
    expect(source.search(/[^\p{ASCII}]/u), name).toBe(-1)
  }
})
