import { expect, it } from 'vitest'
import { hasHidden } from '../../../contract/hidden-characters.ts'
import { showAsData, showLine, showName } from './show-as-data.ts'

it('shows every hidden character as an escape that a text cannot imitate', () => {
  const sly = 'a\u{e0080}\u{e0080}\u2065\ufe0f\u{e01ef}\u3164\u2028\x9b'
  expect(showName(sly)).toBe(String.raw`"a\u{e0080}\u{e0080}\u{2065}\u{fe0f}\u{e01ef}\u{3164}\u{2028}\u{9b}"`)
  expect(showName(String.raw`a\u{e0080}`)).toBe(String.raw`"a\\u{e0080}"`)
  expect(showLine(`rm build${' '.repeat(300)}src`)).toBe(String.raw`rm build\u{20 ×300}src`)
  for (const text of [showName(sly), showLine(sly), showAsData({ [sly]: [sly] })]) expect(hasHidden(text)).toBe(false)
})
