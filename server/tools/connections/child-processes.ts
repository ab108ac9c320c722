/**
 * The local processes that MCP servers run in. Owns their start and their end; knows no protocol. Invariant: when a child is
 * stopped, and when this process ends in whatever way, nothing that a child started lives on.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, messageOf } from '../../lib/errors.ts'
import type { Child } from './child.ts'
import { MARK, prepareSweep, type Sweep } from './process-sweep.ts'

export interface ChildCommand {
  server: string
  command: string
  args: string[]
  cwd?: string | undefined
  env: Record<string, string>
}

/** What a child gets of our own environment: never more. */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const GRACE_MS = 1000

export class ChildProcesses {
  readonly #id = randomBytes(16).toString('hex')
  readonly #inherited: Record<string, string>
  readonly #children = new Set<Child>()
  #watchdog: Sweep | undefined
  #count = 0
  /** One sweep for all is on its way. */
  #stopping = false

  constructor(environment: Record<string, string | undefined>) {
    this.#inherited = Object.fromEntries(
      INHERITED.flatMap((name) => {
        const value = environment[name]
        return value === undefined ? [] : [[name, value]]
      })
    )
    this.#inherited.PATH ??= DEFAULT_PATH
  }

  get pids(): number[] {
    return [...this.#children].map(({ pid }) => pid)
  }

  /** Rejects when the command can't be run at all. */
  async start(options: ChildCommand): Promise<Child> {
    const { server, command, args, cwd } = options
    if (this.#stopping) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    const mark = `${this.#id}.${++this.#count}.`
    this.#watch()
    const process = spawn(command, args, {
      cwd,
      // A session of its own: what it starts can be told from everything else.
      detached: true,
      stdio: 'pipe',
      env: { ...this.#inherited, ...options.env, [MARK]: mark }
    })
    process.stdin.on('error', () => {})
    const { promise: spawned, resolve, reject } = Promise.withResolvers<void>()
    process.once('spawn', resolve)
    process.once('error', (error) => reject(cannotRun(server, command, cwd, error)))
    await spawned
    return this.#adopt(process, mark)
  }

  /** Stops all of them together. */
  async stopAll(): Promise<void> {
    this.#stopping = true
    for (const child of this.#children) child.stdin.end()
    const polite = Promise.all([...this.#children].map((child) => child.exited))
    await Promise.race([polite, delay(GRACE_MS, undefined, { ref: false })])
    const watchdog = this.#watchdog
    this.#watchdog = undefined
    await watchdog?.go()
  }

  #adopt(process: ChildProcessWithoutNullStreams, mark: string): Child {
    const pid = process.pid ?? 0
    const { promise: exited, resolve } = Promise.withResolvers<string>()
    let swept: Promise<void> | undefined
    const sweep = async () => {
      if (this.#stopping) return
      swept ??= prepareSweep(mark, this.#inherited.PATH ?? DEFAULT_PATH).go()
      await swept
    }
    const { stdin, stdout, stderr } = process
    const child: Child = {
      stdin,
      stdout,
      stderr,
      pid,
      exited,
      stop: async (graceMs = GRACE_MS) => {
        process.stdin.end()
        await Promise.race([exited, delay(graceMs, undefined, { ref: false })])
        await sweep()
      }
    }
    this.#children.add(child)
    this.#watchdog?.began(pid)
    process.once('exit', (code, signal) => {
      this.#children.delete(child)
      this.#watchdog?.ended(pid)
      resolve(signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`)
      // What it has left behind belongs to nobody now.
      void sweep()
    })
    return child
  }

  #watch(): void {
    if (this.#watchdog) return
    const watchdog = prepareSweep(`${this.#id}.`, this.#inherited.PATH ?? DEFAULT_PATH)
    this.#watchdog = watchdog
    for (const pid of this.pids) watchdog.began(pid)
    void watchdog.gone.then(() => {
      if (this.#watchdog !== watchdog) return
      this.#watchdog = undefined
      if (this.#children.size > 0) this.#watch()
    })
  }
}

function cannotRun(server: string, command: string, cwd: string | undefined, error: unknown): AppError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const say = (reason: string) =>
    new AppError('unavailable', 'server_not_startable', `The server "${server}" can't be started: ${reason}.`, {
      cause: error,
      details: { permanent: true }
    })
  if (cwd !== undefined && !isFolder(cwd)) return say(`its folder ${cwd} does not exist`)
  if (code === 'ENOENT') return say(`there is no command "${command}"; check its name and PATH`)
  if (code === 'EACCES') return say(`"${command}" may not be executed`)
  return say(messageOf(error))
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
