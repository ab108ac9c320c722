import { describe, expect, it } from 'vitest'
import { ExposedNames } from './exposed-names.ts'

describe('exposed names', () => {
  it('prefixes the name of the server, and resolves it without having listed anything', () => {
    expect(new ExposedNames(undefined).of('files', 'read_file')).toBe('files__read_file')
    expect(new ExposedNames(undefined).target('files__read_file')).toEqual({ server: 'files', name: 'read_file' })
    expect(new ExposedNames(undefined).target('a__b__c')).toEqual({ server: 'a', name: 'b__c' })
  })

  it('does not prefix the names of a single server', () => {
    const names = new ExposedNames('files')
    expect(names.of('files', 'a b/c')).toBe('a b/c')
    expect(names.target('x__y')).toEqual({ server: 'files', name: 'x__y' })
  })

  it.each([
    ['a', '_b', 'a_', 'b'],
    ['a', 'b__c', 'a__b', 'c'],
    ['my server', 'x', 'my_server', 'x'],
    ['s', `${'x'.repeat(80)}1`, 's', `${'x'.repeat(80)}2`]
  ])('distinguishes %s/%s from %s/%s', (server, name, otherServer, otherName) => {
    for (const order of [0, 1]) {
      const names = new ExposedNames(undefined)
      const pairs = [
        { server, name },
        { server: otherServer, name: otherName }
      ]
      const exposed = (order ? pairs.toReversed() : pairs).map(
        (pair) => [names.of(pair.server, pair.name), pair] as const
      )
      for (const [shown, pair] of exposed) {
        expect(shown).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
        expect(names.target(shown)).toEqual(pair)
      }
    }
  })
})
