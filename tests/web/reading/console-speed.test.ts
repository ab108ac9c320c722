import { expect, it } from 'vitest'
import { AnsiLines } from '../../../web/text/console/ansi-lines.ts'
import { findText } from '../../../web/text/console/find-text.ts'
import { cpuMs } from '../../support/cpu-ms.ts'

const ESC = '\x1b'
it.each([
  ['100,000 coloured lines', `${ESC}[32mok${ESC}[0m some text of a test\n`.repeat(100_000)],
  ['sequences that never end', `${ESC}[`.repeat(300_000)],
  ['titles that never end', `${ESC}]`.repeat(300_000)],
  ['jumps and writes all over the screen', `${ESC}[9999A${ESC}[500Gx${ESC}[9999B`.repeat(50_000)]
])('sets %s in good time', async (_, text) => {
  const lines = new AnsiLines()
  expect(await cpuMs(() => lines.push(text))).toBeLessThan(10_000)
  expect(await cpuMs(() => findText(lines, 'test'))).toBeLessThan(5000)
})
