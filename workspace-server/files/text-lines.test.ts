import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { readLines } from './text-lines.ts'

it('gives the lines that splitting the whole text gives', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'file')
  const text = fc
    .array(fc.string({ unit: fc.constantFrom('a', 'é', '\n', '€'), maxLength: 9 }))
    .map((all) => all.join(''))
  const property = fc.asyncProperty(
    text,
    fc.integer({ min: 1, max: 30 }),
    fc.integer({ min: 1, max: 10 }),
    async (whole, first, maxLines) => {
      writeFileSync(file, whole)
      const fd = openSync(file, 'r')
      const request = { first, maxLines, maxBytes: 1000, maxCountedBytes: 1e9, signal: new AbortController().signal }
      const range = await readLines(fd, Buffer.byteLength(whole), request)
      closeSync(fd)
      const lines = whole.match(/[^\n]*\n|[^\n]+$/g) ?? []
      const wanted = lines.slice(first - 1, first - 1 + maxLines)
      expect(range.bytes.toString()).toBe(wanted.join(''))
      expect(range.lines).toBe(wanted.length)
      expect(range.totalLines).toBe(lines.length)
      expect(range.truncated).toBe(lines.length > first - 1 + maxLines)
    }
  )
  await fc.assert(property)
  rmSync(folder, { recursive: true })
})
