import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../../tests/support/temporary-folder.ts'
import { tarStream } from './image-tar.ts'

let dir: string
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => rmSync(dir, { recursive: true }))

test('tar itself unpacks what was written, with modes and all sizes around the block', async () => {
  const sizes = [0, 1, 511, 512, 513, 100_000]
  const onDisk = join(dir, 'on-disk')
  writeFileSync(onDisk, Buffer.alloc(200_001, 'x'))
  const tar = await buffer(
    tarStream([
      ...sizes.map((size) => ({ path: `some/dir/f${size}`, mode: 0o711, content: Buffer.alloc(size, `${size}`) })),
      { path: 'link', mode: 0o777, content: { link: 'some/where else' } },
      { path: 'big', mode: 0o640, content: { file: onDisk, size: 200_001 } }
    ])
  )
  execFileSync('tar', ['-xpf', '-', '-C', dir], { input: tar })
  for (const size of sizes) {
    const file = join(dir, `some/dir/f${size}`)
    expect(readFileSync(file).equals(Buffer.alloc(size, `${size}`))).toBe(true)
    expect(statSync(file).mode & 0o7777).toBe(0o711)
  }
  expect(readlinkSync(join(dir, 'link'))).toBe('some/where else')
  expect(readFileSync(join(dir, 'big')).equals(readFileSync(onDisk))).toBe(true)
  expect(execFileSync('tar', ['-tvf', '-', '--numeric-owner'], { input: tar }).toString()).toMatch(
    /^-rw-r----- 0\/0 +200001 .* big$/m
  )
})

test('a file that has another size than announced breaks the stream instead of shifting what follows', async () => {
  const file = join(dir, 'short')
  writeFileSync(file, 'abc')
  await expect(buffer(tarStream([{ path: 'a', mode: 0o644, content: { file, size: 4 } }]))).rejects.toThrow(/changed/)
})

test('equal content gives equal bytes', async () => {
  const make = () => buffer(tarStream([{ path: 'a', mode: 0o644, content: Buffer.from('x') }]))
  expect((await make()).equals(await make())).toBe(true)
})
