import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { files as filesOf, MB, put } from '../checkpoints/checkpoint-files.fixture.ts'
import { ObjectFixture } from './object-checkpoints.fixture.ts'

let fixture: ObjectFixture
beforeEach(async () => {
  fixture = await ObjectFixture.open()
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', fixture.dir])
})
afterEach(async () => {
  execFileSync('umount', ['-l', fixture.dir])
  await fixture.dispose()
})

// Seen to fail: from then on, nothing could be saved or opened, although every file was a copy of an object.
it('saves and opens files while the disk of the cache is full of copies', async () => {
  const store = fixture.instance(64 * MB)
  const one = await store.open('s', await fixture.takeOver('s'))
  const expected: Record<string, string> = {}
  for (let i = 0; i < 8; i++) {
    const text = randomBytes(MB / 2).toString('hex')
    expected[`f${i}`] = text
    await put(one, { [`f${i}`]: text })
  }
  expect(await filesOf(await store.open('s', await fixture.takeOver('s')))).toEqual(expected)
})
