/**
 * The local processes of MCP servers. Owns their start and their end; knows no protocol. Invariant: when a child is stopped, or
 * this process ends in whatever way, nothing that a child started survives.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, errorCode, messageOf } from '../../lib/errors.ts'
import { checkCommand } from '../../lib/files/find-command.ts'
import type { Child } from './child.ts'
import { confine, linkEnds, type OurPlaces, refuseHidden, watchedFiles } from './child-covers.ts'
import type { Isolation, Settled } from './child-isolation.ts'
import { CoverWatch } from './cover-watch.ts'
import { findIsolation } from './find-isolation.ts'
import { DEPTH, depthBelow } from './gateway-depth.ts'
import { isolationMemory, rememberExtent } from './isolation-memory.ts'
import { type PeerSocket, type Sender, senderOf } from './peer-process.ts'
import { MARK, prepareSweep, type Sweep } from './process-sweep.ts'

export interface ChildCommand {
  server: string
  command: string
  args: string[]
  cwd?: string | undefined
  env: Record<string, string>
}

/** The only variables of our own environment that a child gets. */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const GRACE_MS = 1000

export interface ChildProcessesOptions {
  /** Files and folders of ours that no child may see. */
  places?: OurPlaces | undefined
  /** Set if people other than the owner of this machine use it: a child that could read our files or signal our processes is not started. */
  isHosted?: boolean | undefined
  /** Called once if children can read our files or signal our processes. */
  onExposed?: ((sentence: string) => void) | undefined
  /** Replaces the check of this machine. */
  findIsolation?: (() => Promise<Isolation | undefined>) | undefined
}

/** Explains to people what it means that this machine can't isolate servers. */
export const EXPOSED =
  'On this system, servers without "sandbox" can read each other\'s secrets, DATA_DIR and mcp.json, or send signals to other processes. Allow user namespaces, or give servers a "sandbox" in mcp.json.'

export class ChildProcesses {
  readonly #id = randomBytes(16).toString('hex')
  readonly #inherited: Record<string, string>
  /** Each with the process that leads its session, which is not that of the command if there is a PID namespace. */
  readonly #children = new Map<Child, number>()
  readonly #places: OurPlaces | undefined
  readonly #options: ChildProcessesOptions
  /** Covers our files again, per child. */
  readonly #covered = new Map<Child, () => void>()
  readonly #coverWatch = new CoverWatch(() => {
    for (const coverAgain of this.#covered.values()) coverAgain()
  })
  readonly #depth: string
  #isolation: Promise<Isolation | undefined> | undefined
  #watchdog: Sweep | undefined
  #count = 0
  #isWarned = false
  /** `stopAll` is sweeping all children. */
  #stopping = false

  constructor(environment: Record<string, string | undefined>, options: ChildProcessesOptions = {}) {
    this.#places = options.places
    this.#options = options
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
    return [...this.#children.keys()].map(({ pid }) => pid)
  }

  /** Whether a connection on this machine comes from a child, or from a process that it started. */
  senderOf(socket: PeerSocket): Promise<Sender> {
    const dataDir = this.#places && realpathSync(this.#places.dataDir)
    return senderOf(socket, { pids: [...this.#children.values(), ...this.pids], mark: this.#id, dataDir })
  }

  /** Throws if one of these folders is hidden from servers. */
  refuseHidden(server: string, folders: string[]): void {
    if (this.#places) refuseHidden({ server, command: '', args: folders, env: {} }, '/', this.#places)
  }

  /** Rejects if the command can't be run at all. */
  async start(options: ChildCommand): Promise<Child> {
    const { server, command, args, cwd } = options
    const isolation = await this.isolation()
    if (this.#stopping) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    const mark = `${this.#id}.${++this.#count}.`
    const env: Record<string, string> = { ...this.#inherited, ...options.env, [MARK]: mark, [DEPTH]: this.#depth }
    this.#checkIsolation(server, isolation)
    const confinement = confine({ server, command, args, cwd, env }, isolation?.covers ? this.#places : undefined)
    const ends = this.#places && linkEnds(this.#places)
    this.#watch()
    try {
      if (isolation) checkCommand(command, { path: env.PATH ?? DEFAULT_PATH, cwd })
      const words = isolation?.wrap({ command, args, env }, confinement) ?? { command, args, env }
      // Before the start, so that every later replacement is noticed.
      const guarded = [...confinement.files, ...confinement.engines, ...confinement.replaceable]
      if (this.#places && guarded.length > 0) this.#coverWatch.add([...guarded, ...watchedFiles(this.#places)])
      const stdio: 'pipe'[] = ['pipe', 'pipe', 'pipe', ...(isolation ? ['pipe' as const] : [])]
      // Its own session distinguishes what it starts from everything else.
      const process = spawn(words.command, words.args, { cwd, detached: true, stdio, env: words.env })
      const { promise: spawned, resolve, reject } = Promise.withResolvers<void>()
      process.once('spawn', resolve)
      process.once('error', reject)
      await spawned
      const settled = isolation?.settle(process, confinement)
      const child = this.#adopt(process, mark, settled)
      if (settled && guarded.length > 0) this.#keepCovered(child, settled, ends)
      return child
    } catch (error) {
      throw cannotRun(server, command, cwd, error)
    }
  }

  /** How children are isolated; undefined if this machine can't. */
  isolation(): Promise<Isolation | undefined> {
    const found = this.#isolation ?? (this.#options.findIsolation ?? (() => this.#findIsolation()))()
    this.#isolation = found
    // Cache results only, not failures.
    found.catch(() => {
      if (this.#isolation === found) this.#isolation = undefined
    })
    return found
  }

  async #findIsolation(): Promise<Isolation | undefined> {
    const memory = this.#places && isolationMemory(this.#places.dataDir)
    const found = await findIsolation({ memory })
    if (memory !== undefined && found) rememberExtent(memory, found.extent)
    return found
  }

  #checkIsolation(server: string, isolation: Isolation | undefined): void {
    if (isolation?.holdsSignals) return
    if (this.#options.isHosted) {
      const message = `The server "${server}" was not started: with AUTH_TOKEN set, servers without "sandbox" run only if our files and processes can be hidden from them. ${EXPOSED}`
      throw new AppError('forbidden', 'isolation_unavailable', message, { details: { permanent: true } })
    }
    if (!this.#isWarned) this.#options.onExposed?.(EXPOSED)
    this.#isWarned = true
  }

  /** Stops all of them together. */
  async stopAll(): Promise<void> {
    this.#stopping = true
    this.#coverWatch.close()
    for (const child of this.#children.keys()) child.stdin.end()
    const polite = Promise.all([...this.#children.keys()].map((child) => child.exited))
    await Promise.race([polite, delay(GRACE_MS, undefined, { ref: false })])
    const watchdog = this.#watchdog
    this.#watchdog = undefined
    await watchdog?.go()
  }

  /** Stops a child that has killed the guard of our files, or that was started when they were elsewhere. */
  #keepCovered(child: Child, settled: Settled, ends: string | undefined): void {
    const isMoved = () => this.#places !== undefined && linkEnds(this.#places) !== ends
    this.#covered.set(child, () => (isMoved() ? void child.stop(0) : settled.coverAgain()))
    void child.exited.then(() => this.#covered.delete(child))
    void settled.lost.then(() => (this.#children.has(child) ? child.stop(0) : undefined))
  }

  #adopt(process: ChildProcess, mark: string, settled: Settled | undefined): Child {
    const { stdin, stdout, stderr, pid } = process
    if (!stdin || !stdout || !stderr || pid === undefined) throw new Error('it has no streams')
    stdin.on('error', () => {})
    const { promise: exited, resolve } = Promise.withResolvers<string>()
    let swept: Promise<void> | undefined
    const sweep = async () => {
      if (this.#stopping) return
      swept ??= this.#sweep(mark, this.#children.get(child))
      await swept
    }
    const child: Child = {
      stdin,
      stdout,
      stderr,
      get pid() {
        return settled?.pid() ?? pid
      },
      exited,
      stop: async (graceMs = GRACE_MS) => {
        stdin.end()
        await Promise.race([exited, delay(graceMs, undefined, { ref: false })])
        await sweep()
      }
    }
    this.#children.set(child, pid)
    this.#watchdog?.began(pid)
    process.once('exit', (code, signal) => {
      this.#children.delete(child)
      this.#watchdog?.ended(pid)
      resolve(signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`)
      // Stops what it has left behind.
      void sweep()
    })
    return child
  }

  /** `session` is unknown if its first process has ended: its number may belong to another process now. */
  async #sweep(mark: string, session: number | undefined): Promise<void> {
    const sweep = prepareSweep(mark)
    if (session !== undefined) sweep.began(session)
    await sweep.go()
  }

  #watch(): void {
    if (this.#watchdog) return
    const watchdog = prepareSweep(`${this.#id}.`)
    this.#watchdog = watchdog
    for (const pid of this.#children.values()) watchdog.began(pid)
    void watchdog.gone.then(() => {
      if (this.#watchdog !== watchdog) return
      this.#watchdog = undefined
      if (this.#children.size > 0) this.#watch()
    })
  }
}

function cannotRun(server: string, command: string, cwd: string | undefined, error: unknown): AppError {
  const code = errorCode(error)
  const say = (reason: string) =>
    new AppError('unavailable', 'server_not_startable', `The server "${server}" can't be started: ${reason}.`, {
      cause: error,
      details: { permanent: true }
    })
  if (cwd !== undefined && !isFolder(cwd)) return say(`its folder ${cwd} does not exist`)
  if (code === 'ENOENT') {
    const [program = ''] = command.trim().split(/\s/)
    const isLine = program !== command && !program.includes('/')
    const how = isLine ? `put what follows "${program}" into "args"` : 'check its name and PATH'
    return say(`there is no command "${command}"; ${how}`)
  }
  if (code === 'EACCES') return say(`"${command}" may not be executed`)
  return say(messageOf(error))
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
