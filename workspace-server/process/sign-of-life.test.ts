import { rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { startSignOfLife } from './sign-of-life.ts'

let state: string

beforeEach(() => {
  state = temporaryFolder()
  vi.useFakeTimers({ toFake: ['setInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(state, { recursive: true })
})

it('touches the file at the start and every 20 s', () => {
  startSignOfLife(state, () => {})
  utimesSync(join(state, 'alive'), 1, 1)
  vi.advanceTimersByTime(20_000)
  expect(statSync(join(state, 'alive')).mtimeMs).toBeGreaterThan(Date.now() - 10_000)
})

it('notices 30 minutes of silence, counted from the last message', () => {
  const onSilence = vi.fn()
  const life = startSignOfLife(state, onSilence)
  vi.advanceTimersByTime(29 * 60_000)
  life.heard()
  vi.advanceTimersByTime(29 * 60_000)
  expect(onSilence).not.toHaveBeenCalled()
  vi.advanceTimersByTime(60_000)
  expect(onSilence).toHaveBeenCalled()
})
