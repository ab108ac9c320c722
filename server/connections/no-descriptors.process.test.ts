import { EventEmitter } from 'node:events'
import { expect, it, vi } from 'vitest'
import { ChildProcesses } from './local/child-processes.ts'
import { prepareSweep } from './local/process-sweep.ts'

// Like a child process of Node when no more files can be opened: it has no streams, and emits the error a moment later.
vi.mock('node:child_process', () => ({
  spawn: () => {
    const child = Object.assign(new EventEmitter(), { ref() {}, unref() {} })
    process.nextTick(() => child.emit('error', Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' })))
    return child
  }
}))

// An uncaught error would end the process; here it fails the test run.
it('reports a server that can not be started because the process has no file descriptors left', async () => {
  const processes = new ChildProcesses({ PATH: process.env.PATH })
  const start = () => processes.start({ server: 'any', command: 'sh', args: [], env: {} })
  // On Linux it is not started unprotected either, although the check for isolation has failed.
  const code = process.platform === 'linux' ? 'isolation_undecided' : 'server_not_startable'
  await expect(start()).rejects.toMatchObject({ code })
  await expect(start()).rejects.toMatchObject({ code })
  await processes.stopAll()
})

it('ends a sweep that can not be started for lack of file descriptors, without an immediate retry', async () => {
  const sweep = prepareSweep('mark.')
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
