import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { isolation } from './child-isolation.ts'
import { ChildProcesses } from './child-processes.ts'
import { findIsolation } from './find-isolation.ts'

// Checked: if a probe that takes too long counts as a failure, the server runs unprotected from then on.
describe.runIf(process.platform === 'linux')('a machine too busy to be tried', () => {
  it('is not taken for one that can not isolate servers', async () => {
    await expect(findIsolation({ probeMs: 0 })).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'isolation_undecided'
    })
  })

  it('starts no unprotected server, and is checked again at the next start', async () => {
    const canIsolate = (await findIsolation()) !== undefined
    let tries = 0
    const processes = new ChildProcesses(
      { PATH: process.env.PATH },
      { findIsolation: () => findIsolation(tries++ === 0 ? { probeMs: 0 } : {}) }
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

describe.runIf(process.platform === 'linux')('the variables of a server', () => {
  const dir = temporaryFolder()
  afterAll(() => discard(dir))

  async function outputOf(command: string, args: string[], env: Record<string, string>): Promise<string> {
    const processes = new ChildProcesses({ PATH: process.env.PATH, HOME: dir })
    const output = await text((await processes.start({ server: 'any', command, args, env })).stdout)
    await processes.stopAll()
    return output
  }

  it('arrive unchanged, and no others with them', async () => {
    const env = { TOKEN: ' a "b" $c `d`\n\\e', EMPTY: '', IFS: 'x', ENV: '/x', PS4: '$(id)', LD_LIBRARY_PATH: dir }
    const seen = (await outputOf('env', ['-0'], env)).split('\0').filter((each) => each !== '')
    const given = { PATH: process.env.PATH, HOME: dir, ...env }
    const expected = Object.entries(given).map(([name, value]) => `${name}=${value}`)
    expect(seen).toEqual(expect.arrayContaining(expected))
    const names = seen.map((each) => each.split('=')[0] ?? '')
    const rest = names.filter((name) => !Object.hasOwn(given, name) && !['PWD', '_', 'SHLVL'].includes(name))
    expect(rest.every((name) => /^MCP_ORCHESTRATOR_(CHILD|DEPTH)/.test(name))).toBe(true)
  })

  // Checked: if the wrapper gets the server's variables, `/bin/sh` and `mount` say which libraries they load.
  it('do not reach the programs that isolate it', async () => {
    const canIsolate = (await findIsolation()) !== undefined
    await outputOf('sleep', ['0'], { LD_DEBUG: 'files', LD_DEBUG_OUTPUT: join(dir, 'loaded') })
    const loaded = readdirSync(dir).map((name) => readFileSync(join(dir, name), 'latin1'))
    expect(loaded.join('')).toContain('sleep')
    if (canIsolate) expect(loaded.join('')).not.toMatch(/needed by \S*(mount|unshare|setpriv|\/sh) /)
  })
})

// A file that is replaced at that moment sends this request. The script would take it for the sign that its ids are mapped.
it.runIf(process.platform === 'linux')('a request to cover files waits for the ids of the child', () => {
  let written = ''
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    written += chunk
    done()
  }
  const line = new Duplex({ read: () => {}, write })
  const process = Object.assign(new EventEmitter(), { pid: 0, stdio: [null, null, null, line] })
  const confinement = { held: [], folders: [], files: [], engines: ['/x'], readOnly: [], replaceable: [], cwd: '/' }
  const best = isolation({ name: 'files', covers: true })
  best?.settle(process as unknown as ChildProcess, confinement).coverAgain()
  expect(written).toBe('')
})

describe.runIf(process.platform === 'linux')('System V memory', () => {
  // Checked: without IPC namespaces, both servers have the same one, in which each can read the segments of the other.
  it("is a server's own, except for one that shares it with a display", async () => {
    const canIsolate = (await findIsolation()) !== undefined
    const processes = new ChildProcesses({ PATH: process.env.PATH })
    const spaceOf = async (env: Record<string, string>) => {
      const child = await processes.start({ server: 'any', command: 'readlink', args: ['/proc/self/ns/ipc'], env })
      return (await text(child.stdout)).trim()
    }
    const ours = readlinkSync('/proc/self/ns/ipc')
    const different = new Set([ours, await spaceOf({}), await spaceOf({})])
    expect(different.size).toBe(canIsolate ? 3 : 1)
    expect(await spaceOf({ DISPLAY: ':1' })).toBe(ours)
    await processes.stopAll()
  })
})
