import { readlinkSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { findIsolation } from './child-isolation.ts'
import { ChildProcesses } from './child-processes.ts'

// Checked: if a probe that takes too long counts as a failure, the server runs unprotected from then on.
describe.runIf(process.platform === 'linux')('a machine too busy to be tried', () => {
  it('is not taken for one that can not isolate servers', async () => {
    await expect(findIsolation(0)).rejects.toMatchObject({ kind: 'unavailable', code: 'isolation_undecided' })
  })

  it('starts no unprotected server, and is checked again at the next start', async () => {
    const canIsolate = (await findIsolation()) !== undefined
    let tries = 0
    const processes = new ChildProcesses(
      { PATH: process.env.PATH },
      { findIsolation: () => findIsolation(tries++ === 0 ? 0 : undefined) }
    )
    const start = () => processes.start({ server: 'any', command: 'readlink', args: ['/proc/self/ns/user'], env: {} })
    await expect(start()).rejects.toMatchObject({ code: 'isolation_undecided' })
    for (let round = 0; round < 2; round++) {
      const namespace = (await text((await start()).stdout)).trim()
      expect(namespace).toMatch(/^user:/)
      expect(namespace !== readlinkSync('/proc/self/ns/user')).toBe(canIsolate)
    }
    expect(tries).toBe(2)
    await processes.stopAll()
  })
})
