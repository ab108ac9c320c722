import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pairsOf, terms, words } from './words.ts'

describe('words', () => {
  it.each([
    ['get_user_info', ['get', 'user', 'info']],
    ['get-user-info', ['get', 'user', 'info']],
    ['getUserInfo', ['get', 'user', 'info']],
    ['HTTPServerList', ['http', 'server', 'list']]
  ])('splits the identifier %s in prose', (text, expected) => {
    expect(words(text, 'prose')).toEqual(expected)
  })

  it('keeps a brand whole in prose, and yields both in a name', () => {
    expect(words('on GitHub', 'prose')).toEqual(['on', 'github'])
    expect(words('GitHub', 'name')).toEqual(['git', 'hub', 'github'])
    expect(words('GitHub', 'parts')).toEqual(['git', 'hub'])
  })

  it('reads other scripts: drops accents, splits text without spaces into pairs', () => {
    expect(words('Météo à Genève', 'prose')).toEqual(['meteo', 'a', 'geneve'])
    expect(words('天气预报', 'prose')).toEqual(['天气', '气预', '预报'])
    expect(words('погода в Москве', 'prose')).toEqual(['погода', 'в', 'москве'])
  })

  it('never throws, is limited, and yields lower case without separators', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        for (const kind of ['prose', 'name', 'parts'] as const) {
          for (const word of words(text, kind)) {
            expect(word).not.toMatch(/[\s_-]/)
            expect(word.length).toBeLessThanOrEqual(400)
          }
        }
      })
    )
    expect(words('a '.repeat(1_000_000), 'prose').length).toBeLessThan(10_000)
  })
})

describe('terms', () => {
  it('drops stop words, stems, and stops at the limit', () => {
    expect(terms('Could you please list the files in my folders?', 'prose', 10)).toEqual(['list', 'file', 'folder'])
    expect(terms('one two three four five six', 'prose', 2)).toHaveLength(2)
  })

  it('pairs neighbours only', () => {
    expect([...pairsOf(['a', 'b', 'c', 'a', 'b'])]).toEqual(['a b', 'b c', 'c a'])
    expect([...pairsOf(['a'])]).toEqual([])
  })
})
