import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { MARK, prepareSweep } from './process-sweep.ts'

const folder = temporaryFolder()
afterEach(() => {
  vi.unstubAllEnvs()
  discard(folder)
})

// Checked: with the person's own PATH, the server's `grep` runs when a child is stopped.
it('runs no program that a server has put into a folder of PATH', async () => {
  for (const name of ['grep', 'sleep'])
    writeFileSync(join(folder, name), `#!/bin/sh\ntouch ${folder}/ran\nexec /bin/${name} "$@"\n`, { mode: 0o755 })
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`)
  const mark = `test-${process.pid}.`
  const child = spawn('/bin/sh', ['-c', 'trap "" TERM; while :; do read -r _ || exit; done'], {
    env: { [MARK]: mark },
    detached: true, // the sweep ends the whole session of such a process
    stdio: ['pipe', 'ignore', 'ignore']
  })
  const ended = once(child, 'exit')
  await prepareSweep(mark).go()
  await ended
  expect(child.signalCode).toBe('SIGKILL')
  expect(existsSync(join(folder, 'ran'))).toBe(false)
})
