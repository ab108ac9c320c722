import { expect, it } from 'vitest'
import { toBlocks } from '../../../web/text/markdown/markdown.ts'
import { cpuMs } from '../../support/cpu-ms.ts'

// Seen before: each line looked through the whole rest for its end, so eight times as many took fifty times as long.
it('takes time in proportion to the text for many openings of math', async () => {
  const parse = (lines: number) => cpuMs(() => void toBlocks('$$a\n'.repeat(lines)))
  await parse(5000)
  const few = await parse(5000)
  expect(await parse(40_000)).toBeLessThan(40 * few + 100)
})
