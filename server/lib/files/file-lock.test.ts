import { existsSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { withFileLock } from './file-lock.ts'

const dir = temporaryFolder()
afterAll(() => discard(dir))

it('runs one job at a time, and leaves no file', async () => {
  const file = join(dir, 'a.lock')
  let inside = 0
  const jobs = [1, 2, 3].map(() =>
    withFileLock(file, 5000, async () => {
      expect(++inside).toBe(1)
      await new Promise(setImmediate)
      inside--
    })
  )
  await Promise.all(jobs)
  expect(existsSync(file)).toBe(false)
})

it('waits for no process that died long ago, and frees it after a failure', async () => {
  const file = join(dir, 'b.lock')
  writeFileSync(file, 'left by a dead process')
  utimesSync(file, 0, 0)
  await expect(withFileLock(file, 5000, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await withFileLock(file, 5000, async () => 'done')).toBe('done')
})

it('gives up if another process never releases the lock', async () => {
  const file = join(dir, 'c.lock')
  const renew = setInterval(() => writeFileSync(file, 'held'), 5)
  writeFileSync(file, 'held')
  await expect(withFileLock(file, 50, async () => {})).rejects.toMatchObject({ code: 'deadline_exceeded' })
  clearInterval(renew)
})

// Checked: if only the age counts, the job runs after the deadline or never.
it.each([
  ['a folder', (file: string) => mkdirSync(file)],
  ['a link to nothing', (file: string) => symlinkSync('nowhere', file)],
  ['a link to a file in use', (file: string) => symlinkSync(process.execPath, file)],
  [
    'from the future',
    (file: string) => {
      writeFileSync(file, '')
      utimesSync(file, 0, Date.now() / 1000 + 3600)
    }
  ]
])('does not wait for what is %s', async (what, plant) => {
  const file = join(dir, `${what}.lock`)
  plant(file)
  // With so long a patience, the test would time out.
  expect(await withFileLock(file, 600_000, async () => 'done')).toBe('done')
  expect(existsSync(process.execPath)).toBe(true)
})

it('names a folder that it can not remove, at once', async () => {
  const file = join(dir, 'full.lock')
  mkdirSync(join(file, 'x'), { recursive: true })
  await expect(withFileLock(file, 600_000, async () => {})).rejects.toThrow(`${file} is a folder`)
})
