import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, lstatSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/fixtures/core.ts'

const main = join(import.meta.dirname, '../main.ts')
let dir = ''
const started: ChildProcess[] = []

beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
  discard(dir)
})

/** Until it listens or ends. */
async function proxy(listen: string) {
  const args = ['--disable-warning=ExperimentalWarning', main, 'engine-proxy', '--listen', listen]
  const child = spawn(process.execPath, args, { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] })
  started.push(child)
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  const listens = new Promise<void>((found) => {
    child.stderr.on('data', () => said.includes('proxy listens at') && found())
  })
  await Promise.race([listens, once(child, 'close')])
  return { child, said: () => said }
}

async function answers(path: string): Promise<boolean> {
  const socket = connect({ path })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

describe('the engine proxy', { timeout: 60_000 }, () => {
  it('leaves a socket alone that somebody listens at: it may be the engine’s own', async () => {
    const path = join(dir, 'docker.sock')
    const engine = createServer().listen(path)
    await once(engine, 'listening')
    const { child, said } = await proxy(path)
    expect(said()).toBe(
      `mcp-orchestrator: Something listens at ${path} already: stop it, or let the engine proxy listen elsewhere.\n`
    )
    expect(child.exitCode).toBe(1)
    expect(await answers(path)).toBe(true)
    engine.close()
  })

  it('takes the place of one that was killed', async () => {
    const path = join(dir, 'proxy.sock')
    const first = await proxy(path)
    first.child.kill('SIGKILL')
    await once(first.child, 'close')
    expect(existsSync(path)).toBe(true)
    expect((await proxy(path)).said()).toContain(`listens at ${path}`)
    expect(await answers(path)).toBe(true)
  })

  it('takes a number for a path, and opens no port', async () => {
    expect((await proxy('2375')).said()).toContain(`listens at ${join(dir, '2375')}`)
    expect(lstatSync(join(dir, '2375')).isSocket()).toBe(true)
  })
})
