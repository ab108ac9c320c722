import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { tidy } from './tidy.ts'

const ended = async () => true
const isInside = () => true

/** The state folder of a server that has done nothing but its work. */
function ownState(): string {
  const state = temporaryFolder()
  mkdirSync(join(state, 'epochs/7'), { recursive: true })
  mkdirSync(join(state, 'sync'))
  writeFileSync(join(state, 'alive'), '')
  writeFileSync(join(state, 'idle-seen'), '\n')
  return state
}

it('empties the folders when everything has ended, and follows no link out of them', async () => {
  const [folder, other] = [temporaryFolder(), temporaryFolder()]
  mkdirSync(join(folder, 'a/b'), { recursive: true })
  writeFileSync(join(folder, 'a/b/c'), 'x')
  writeFileSync(join(other, 'kept'), 'x')
  symlinkSync(other, join(folder, 'link'))
  expect(await tidy(ended, { folders: [folder], tables: [], state: ownState(), isInside })).toEqual({ isTidy: true })
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
  const options = { folders: [join(folder, 'missing')], tables: [table], state: ownState(), isInside }
  expect(await tidy(ended, options)).toEqual({ isTidy: false })
  const titles = '       key      shmid perms\n'
  writeFileSync(table, titles)
  expect(await tidy(ended, options)).toEqual({ isTidy: true })
  writeFileSync(table, `${titles}         0          0  1600\n`)
  expect(await tidy(ended, options)).toEqual({ isTidy: false })
})

it.each<[string, (state: string) => void]>([
  ['another file', (state) => writeFileSync(join(state, 'x'), '')],
  ['text in a sign of life', (state) => writeFileSync(join(state, 'alive'), 'undecided')],
  ['text in what the first process has seen', (state) => writeFileSync(join(state, 'idle-seen'), 'undecided\n')],
  ['another epoch', (state) => mkdirSync(join(state, 'epochs/6'))],
  ['an epoch that is written otherwise', (state) => mkdirSync(join(state, 'epochs/08'))],
  ['a file in an epoch', (state) => writeFileSync(join(state, 'epochs/7/x'), '')],
  ['a file among the notices', (state) => writeFileSync(join(state, 'sync/x'), '')],
  [
    'a link in place of an epoch',
    (state) => {
      rmSync(join(state, 'epochs/7'), { recursive: true })
      symlinkSync(temporaryFolder(), join(state, 'epochs/7'))
    }
  ],
  [
    'a link in place of a folder',
    (state) => {
      rmSync(join(state, 'sync'), { recursive: true })
      symlinkSync(temporaryFolder(), join(state, 'sync'))
    }
  ]
])('is not tidy with %s in the folder of the server', async (_, leave) => {
  const options = { folders: [], tables: [], isInside }
  const state = ownState()
  expect(await tidy(ended, { ...options, state })).toEqual({ isTidy: true })
  leave(state)
  expect(await tidy(ended, { ...options, state })).toEqual({ isTidy: false })
})

it('is tidy before the server has watched anything', async () => {
  const state = ownState()
  rmSync(join(state, 'sync'), { recursive: true })
  expect(await tidy(ended, { folders: [], tables: [], state, isInside })).toEqual({ isTidy: true })
})
