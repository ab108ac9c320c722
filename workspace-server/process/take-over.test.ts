import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { SERVER_EXIT } from '../protocol.ts'
import { EpochFence } from './epoch-fence.ts'
import { takeOver } from './take-over.ts'

let state: string
const seen = () => readdirSync(join(state, 'epochs')).sort()

beforeEach(() => {
  state = temporaryFolder()
})
afterEach(() => rmSync(state, { recursive: true }))

it('remembers the highest epoch only, across servers', () => {
  const fence = new EpochFence(state)
  expect(fence.current()).toBe(-1)
  expect([0, 5, 5, 1_790_000_000_000].map((epoch) => fence.raise(epoch))).toEqual([true, true, true, true])
  expect(seen()).toEqual(['1790000000000'])
  expect(new EpochFence(state).raise(6)).toBe(false)
  expect(seen()).toEqual(['1790000000000'])
})

it('ignores names that are not epochs', () => {
  const fence = new EpochFence(state)
  for (const name of ['x', '-1', '1e9', '99999999999999999999']) mkdirSync(join(state, 'epochs', name))
  expect(fence.raise(3)).toBe(true)
})

it('writes its epoch before it ends anybody', async () => {
  let written: string[] = []
  const endOthers = async () => {
    written = seen()
    return true
  }
  expect(await takeOver(new EpochFence(state), 4, endOthers)).toBeNull()
  expect(written).toEqual(['4'])
})

it('does not serve when a higher epoch appears while it ends the others', async () => {
  const endOthers = async () => new EpochFence(state).raise(9)
  expect(await takeOver(new EpochFence(state), 4, endOthers)).toBe(SERVER_EXIT.staleEpoch)
})

it('stops killing as soon as a higher epoch is there', async () => {
  let asked: boolean | undefined
  const endOthers = async ({ mayContinue }: { mayContinue?: () => boolean }) => {
    new EpochFence(state).raise(9)
    asked = mayContinue?.()
    return false
  }
  expect(await takeOver(new EpochFence(state), 4, endOthers)).toBe(SERVER_EXIT.staleEpoch)
  expect(asked).toBe(false)
})

it('reports that others could not be ended', async () => {
  expect(await takeOver(new EpochFence(state), 4, async () => false)).toBe(SERVER_EXIT.takeoverFailed)
})
