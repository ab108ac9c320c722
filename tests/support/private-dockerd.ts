/**
 * A second engine for tests that stop, kill or reconfigure one. It has its own data, socket and network namespace, so that
 * the machine's engine is not affected. Its containers have no network. Needs root. Always `dispose()` it.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, writeFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import Dockerode from 'dockerode'
import { temporaryFolder } from './temporary-folder.ts'

export interface PrivateEngine {
  socketPath: string
  docker: Dockerode
  /** Like `systemctl stop`: the engine stops its containers. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Like a crash: containers stay until the next start. */
  kill(): Promise<void>
  /** Removes every container, even if a killed engine has left its files mounted. */
  removeContainers(): Promise<void>
  dispose(): Promise<void>
}

const READY_MS = 60_000
const STOP_MS = 60_000

export async function startPrivateEngine(options: { runsc?: boolean } = {}): Promise<PrivateEngine> {
  // Short, because the sockets below it must fit into 107 characters.
  const dir = temporaryFolder()
  const socketPath = join(dir, 'docker.sock')
  const docker = new Dockerode({ socketPath })
  const config = join(dir, 'daemon.json')
  const runsc = { path: '/usr/bin/runsc', runtimeArgs: ['--platform=systrap', '--network=none'] }
  writeFileSync(config, JSON.stringify(options.runsc ? { runtimes: { runsc } } : {}))
  let child: ChildProcess | undefined

  const onExit = () => child?.kill('SIGTERM')
  process.once('exit', onExit)

  async function start(): Promise<void> {
    if (child) return
    await forgetDeadContainerd(dir)
    child = launch(dir, config)
    await waitUntilReady(docker, child, join(dir, 'log'))
  }

  async function end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const ending = child
    if (!ending) return
    child = undefined
    if (ending.exitCode !== null || ending.signalCode !== null) return
    const exited = once(ending, 'exit', { signal: AbortSignal.timeout(STOP_MS) })
    ending.kill(signal)
    await exited
  }

  const engine: PrivateEngine = {
    socketPath,
    docker,
    start,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    async removeContainers() {
      const containers = await docker.listContainers({ all: true })
      await Promise.all(containers.map(({ Id }) => removeContainer(docker.getContainer(Id), dir)))
    },
    async dispose() {
      // Only an engine with the same data can end the processes that a killed engine left behind.
      await start()
      await engine.removeContainers().catch(() => {})
      await end('SIGTERM')
      process.off('exit', onExit)
      await unmountBelow(dir)
      await rm(dir, { recursive: true, force: true })
    }
  }
  try {
    await start()
    return engine
  } catch (error) {
    await end('SIGTERM').catch(() => {})
    throw error
  }
}

/**
 * When dockerd is killed, its containerd dies too, but the pid file stays. Until that process is reaped, the next
 * dockerd believes that it is alive and waits for it in vain.
 */
async function forgetDeadContainerd(dir: string): Promise<void> {
  const file = join(dir, 'run/containerd/containerd.pid')
  const pid = await readFile(file, 'utf8').catch(() => null)
  if (pid === null) return
  for (const since = performance.now(); performance.now() - since < READY_MS; await sleep(20)) {
    const stat = await readFile(`/proc/${pid.trim()}/stat`, 'utf8').catch(() => ') Z')
    if (/\) [ZX]/.test(stat)) return await rm(file, { force: true })
  }
}

function launch(dir: string, config: string): ChildProcess {
  const log = openSync(join(dir, 'log'), 'a')
  const namespace = `mcp-${basename(dir)}`
  const args = [
    ['--config-file', config],
    ['--data-root', join(dir, 'data')],
    ['--exec-root', join(dir, 'run')],
    ['--pidfile', join(dir, 'pid')],
    ['--host', `unix://${join(dir, 'docker.sock')}`],
    // Where a system-wide containerd runs, both engines use it.
    ['--containerd-namespace', namespace],
    ['--containerd-plugins-namespace', `${namespace}-plugins`],
    ['--bridge=none', '--iptables=false', '--ip6tables=false', '--shutdown-timeout=3']
  ].flat()
  // `--bridge=none` deletes docker0 of the machine, so use a network namespace. unshare execs, so the pid is dockerd's.
  return spawn('unshare', ['--net', 'dockerd', ...args], { stdio: ['ignore', log, log] })
}

async function waitUntilReady(docker: Dockerode, child: ChildProcess, log: string): Promise<void> {
  let failure = ''
  child.once('error', (error) => {
    failure = error.message
  })
  for (const since = performance.now(); performance.now() - since < READY_MS; ) {
    if (failure || child.exitCode !== null) break
    try {
      await docker.ping()
      return
    } catch {
      await sleep(100)
    }
  }
  const tail = (await readFile(log, 'utf8')).split('\n').slice(-6).join('\n')
  throw new Error(`The private dockerd does not answer: ${failure}\n${tail}`)
}

async function removeContainer(container: Dockerode.Container, dir: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await container.remove({ force: true, v: true })
    } catch (error) {
      const [, mount = ''] = /unlinkat (\S+): device or resource busy/.exec(String(error)) ?? []
      if (!mount.startsWith(`${dir}/`) || tries === 3) throw error
      await promisify(execFile)('umount', ['--lazy', mount]).catch(() => {})
    }
  }
}

/** Removes the mounts of a killed engine; the next engine unmounts only its own. */
async function unmountBelow(dir: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '')
  for (const mount of mounts.filter((path) => path.startsWith(`${dir}/`)).reverse()) {
    await promisify(execFile)('umount', ['--lazy', mount])
  }
}

/** Copies an image, with its name, from one engine to another. */
export async function copyImage(from: Dockerode, to: Dockerode, image: string): Promise<void> {
  const progress = await to.loadImage(await from.getImage(image).get(), { quiet: true })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  to.modem.followProgress(progress, (error: Error | null) => (error ? reject(error) : resolve()))
  await promise
}
