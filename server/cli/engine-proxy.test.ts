import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, lstatSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { APP, LABEL } from '../sandbox/docker/engine/container-spec.ts'

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

/** Resolves when it listens or has ended. */
async function proxy(listen: string, ...more: string[]) {
  const args = ['--disable-warning=ExperimentalWarning', main, 'engine-proxy', '--listen', listen, ...more]
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
  it("does not touch a socket that something listens at: it may be the engine's own", async () => {
    const path = join(dir, 'docker.sock')
    const engine = createServer().listen(path)
    await once(engine, 'listening')
    const { child, said } = await proxy(path)
    expect(said()).toBe(
      `mcp-orchestrator: Another process already listens at ${path}: stop it, or choose another path with --listen.\n`
    )
    expect(child.exitCode).toBe(1)
    expect(await answers(path)).toBe(true)
    engine.close()
  })

  it('replaces one that was killed', async () => {
    const path = join(dir, 'proxy.sock')
    const first = await proxy(path)
    first.child.kill('SIGKILL')
    await once(first.child, 'close')
    expect(existsSync(path)).toBe(true)
    expect((await proxy(path)).said()).toContain(`listens at ${path}`)
    expect(await answers(path)).toBe(true)
  })

  // Checked: if only the HTTP server is closed, the proxy keeps running while a stream is open.
  it('ends on SIGTERM, and closes every stream that it has joined', async () => {
    const [path, engineSocket] = [join(dir, 'proxy.sock'), join(dir, 'engine.sock')]
    const Id = 'a'.repeat(64)
    const inspected = JSON.stringify({ Id, Config: { Labels: { [LABEL.app]: APP } } })
    const engine = createHttpServer((_request, response) => void response.end(inspected)).listen(engineSocket)
    engine.on('upgrade', (_request, socket) =>
      socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
    )
    await once(engine, 'listening')
    const { child } = await proxy(path, '--engine', engineSocket)
    const stream = connect({ path })
    stream.write(
      `POST /containers/${Id}/attach?stream=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n`
    )
    expect(String((await once(stream, 'data'))[0])).toMatch(/^HTTP\/1.1 101 /)
    const ended = once(child, 'exit')
    const cut = once(stream, 'close')
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    await cut
    expect(existsSync(path)).toBe(false)
    engine.close()
    engine.closeAllConnections()
  })

  it('treats a number as a path, and opens no port', async () => {
    expect((await proxy('2375')).said()).toContain(`listens at ${join(dir, '2375')}`)
    expect(lstatSync(join(dir, '2375')).isSocket()).toBe(true)
  })
})
