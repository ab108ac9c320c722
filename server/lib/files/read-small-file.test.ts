import { execFileSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { readSmallFile } from './read-small-file.ts'

const dir = temporaryFolder()
const put = (name: string, text: string) => {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}

describe('a file that someone else names', () => {
  it('is read up to its limit, also through a link', () => {
    const file = put('plain', 'a'.repeat(100_000))
    symlinkSync(file, join(dir, 'link'))
    expect(readSmallFile(join(dir, 'link'), 100_000)).toHaveLength(100_000)
    expect(() => readSmallFile(file, 99_999)).toThrow('larger than 99999 bytes')
    expect(readSmallFile('/dev/null', 1)).toBe('')
    expect(() => readSmallFile(dir, 1)).toThrow(/regular|EISDIR/)
  })

  // Checked: if the file is read whole, the device fills the memory, and the pipe blocks for ever.
  it('is refused if it is an endless device or a pipe without a writer', () => {
    const pipe = join(dir, 'pipe')
    execFileSync('mkfifo', [pipe])
    for (const file of ['/dev/zero', pipe]) expect(() => readSmallFile(file, 1000)).toThrow('not a regular file')
    expect(() => readSmallFile('/dev/zero', 1000, { anyKind: true })).toThrow('larger than 1000 bytes')
  })
})
