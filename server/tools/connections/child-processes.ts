/**
 * The local processes that MCP servers run in. Owns their start and their end; knows no protocol. Invariant: when a child is
 * stopped, and when this process ends in whatever way, nothing that a child started lives on.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, messageOf } from '../../lib/errors.ts'
import type { Child } from './child.ts'
import { findIsolation, type Isolation } from './child-isolation.ts'
import { checkCommand } from './find-command.ts'
import { DEPTH, depthBelow } from './gateway-depth.ts'
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
  readonly #hidden: string[]
  readonly #depth: string
  #isolation: Promise<Isolation | undefined> | undefined
  #watchdog: Sweep | undefined
  #count = 0
  /** One sweep for all is on its way. */
  #stopping = false

  /** `hidden` are files and folders of ours that no child shall see. */
  constructor(environment: Record<string, string | undefined>, hidden: string[] = []) {
    this.#hidden = hidden
    this.#depth = depthBelow(environment)
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
    const isolation = await this.isolation()
    if (this.#stopping) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    const mark = `${this.#id}.${++this.#count}.`
    const env: Record<string, string> = { ...this.#inherited, ...options.env, [MARK]: mark, [DEPTH]: this.#depth }
    this.#watch()
    try {
      if (isolation) checkCommand(command, env.PATH ?? DEFAULT_PATH, cwd)
      const words = isolation?.wrap(command, args, this.#hidden) ?? { command, args }
      const stdio: 'pipe'[] = ['pipe', 'pipe', 'pipe', ...(isolation ? ['pipe' as const] : [])]
      // A session of its own: what it starts can be told from everything else.
      const process = spawn(words.command, words.args, { cwd, detached: true, stdio, env })
      const { promise: spawned, resolve, reject } = Promise.withResolvers<void>()
      process.once('spawn', resolve)
      process.once('error', reject)
      await spawned
      isolation?.settle(process)
      return this.#adopt(process, mark)
    } catch (error) {
      throw cannotRun(server, command, cwd, error)
    }
  }

  /** How children are kept apart; undefined where that can't be done. */
  isolation(): Promise<Isolation | undefined> {
    this.#isolation ??= findIsolation()
    return this.#isolation
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

  #adopt(process: ChildProcess, mark: string): Child {
    const { stdin, stdout, stderr, pid } = process
    if (!stdin || !stdout || !stderr || pid === undefined) throw new Error('it has no streams')
    stdin.on('error', () => {})
    const { promise: exited, resolve } = Promise.withResolvers<string>()
    let swept: Promise<void> | undefined
    const sweep = async () => {
      if (this.#stopping) return
      swept ??= prepareSweep(mark, this.#inherited.PATH ?? DEFAULT_PATH).go()
      await swept
    }
    const child: Child = {
      stdin,
      stdout,
      stderr,
      pid,
      exited,
      stop: async (graceMs = GRACE_MS) => {
        stdin.end()
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
