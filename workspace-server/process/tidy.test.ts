import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { tidy } from './tidy.ts'

const ended = async () => true
const isInside = () => true

it('empties the folders when everything has ended, and follows no link out of them', async () => {
  const [folder, other] = [temporaryFolder(), temporaryFolder()]
  mkdirSync(join(folder, 'a/b'), { recursive: true })
  writeFileSync(join(folder, 'a/b/c'), 'x')
  writeFileSync(join(other, 'kept'), 'x')
  symlinkSync(other, join(folder, 'link'))
  expect(await tidy(ended, { folders: [folder], tables: [], isInside })).toEqual({ isTidy: true })
  expect(existsSync(join(folder, 'a'))).toBe(false)
  expect(existsSync(join(other, 'kept'))).toBe(true)
})

it('touches nothing while something still runs, or outside of our container', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'kept'), 'x')
  expect(await tidy(async () => false, { folders: [folder], isInside })).toEqual({ isTidy: false })
  expect(await tidy(ended, { folders: [folder] })).toEqual({ isTidy: false })
  expect(existsSync(join(folder, 'kept'))).toBe(true)
})

// Checked: if only the folders count, the container is tidy.
it('is not tidy with memory, queues or semaphores of System V, or if nobody can tell', async () => {
  const folder = temporaryFolder()
  const table = join(folder, 'shm')
  const options = { folders: [join(folder, 'missing')], tables: [table], isInside }
  expect(await tidy(ended, options)).toEqual({ isTidy: false })
  const titles = '       key      shmid perms\n'
  writeFileSync(table, titles)
  expect(await tidy(ended, options)).toEqual({ isTidy: true })
  writeFileSync(table, `${titles}         0          0  1600\n`)
  expect(await tidy(ended, options)).toEqual({ isTidy: false })
})
