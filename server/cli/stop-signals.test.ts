import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { listenForStop } from './stop-signals.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('counts a Ctrl-C that arrives twice once; later ones hurry, then end at once', async () => {
  const target = new EventEmitter()
  const { stop, hurry, atOnce } = listenForStop(target)
  target.emit('SIGINT')
  target.emit('SIGTERM')
  await stop
  expect(hurry.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1000)
  target.emit('SIGHUP')
  expect([hurry.aborted, atOnce.aborted]).toEqual([true, false])
  await vi.advanceTimersByTimeAsync(1000)
  target.emit('SIGINT')
  expect(atOnce.aborted).toBe(true)
})
