import { EventEmitter } from 'node:events'
import { expect, it, vi } from 'vitest'
import { ChildProcesses } from './local/child-processes.ts'
import { prepareSweep } from './local/process-sweep.ts'

// As Node's own when this process may open no more files: without streams, and it says why a moment later.
vi.mock('node:child_process', () => ({
  spawn: () => {
    const child = Object.assign(new EventEmitter(), { ref() {}, unref() {} })
    process.nextTick(() => child.emit('error', Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' })))
    return child
  }
}))

// What nobody catches would end the process; here it fails the run.
it('reports a server that can not be started because the process has no file descriptors left', async () => {
  const processes = new ChildProcesses({ PATH: process.env.PATH })
  const start = () => processes.start({ server: 'any', command: 'sh', args: [], env: {} })
  // Nor is it started unprotected, on Linux, because nobody could find out how to protect it.
  const code = process.platform === 'linux' ? 'isolation_undecided' : 'server_not_startable'
  await expect(start()).rejects.toMatchObject({ code })
  await expect(start()).rejects.toMatchObject({ code })
  await processes.stopAll()
})

it('ends a sweep that can not be started for lack of file descriptors, without an immediate retry', async () => {
  const sweep = prepareSweep('mark.', '/bin')
  sweep.began(1)
  sweep.ended(1)
  let isGone = false
  const gone = sweep.gone.then(() => {
    isGone = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isGone).toBe(false)
  await sweep.go()
  await gone
})
