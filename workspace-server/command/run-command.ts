/**
 * Runs one shell command in its own process group and makes sure that it ends: by itself, at its deadline, or when the caller
 * cancels. Background processes may outlive the shell, but never delay the answer.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { MAX_LINE_BYTES } from '../protocol.ts'
import type { LiveOutput } from './live-output.ts'
import { type KeptOutput, OutputKeeper } from './output-keeper.ts'
import { OutputOrder } from './output-order.ts'
import { makeOutputPipes } from './output-pipes.ts'
import { shellCall } from './shell.ts'

/** Kept at both ends of each stream. */
const KEPT_BYTES = 512 * 1024
/** Kept if the result would be too long for a message otherwise: written as JSON, a control character takes six bytes. */
const FITTING_BYTES = 64 * 1024
/** A result contains each text twice. */
const MAX_JSON_BYTES = (MAX_LINE_BYTES - 64 * 1024) / 2
const TERM_GRACE_MS = 1000
const AFTER_KILL_MS = 2000
/**
 * After the shell has ended, wait for more output until nothing has come for QUIET_MS, but at most MAX_QUIET_MS in all. This
 * matters only if a background process keeps the output open. It must outlast a few periods of the processor limit that all
 * processes here share.
 */
const QUIET_MS = 300
const MAX_QUIET_MS = 1500

export interface CommandJob {
  command: string
  cwd: string
  env: Record<string, string>
  timeoutMs: number
  stdin?: string | undefined
  /** Run it where it can't see the server's processes. */
  outOfSight?: boolean
  signal: AbortSignal
  live?: LiveOutput | undefined
}

export interface CommandResult {
  exitCode: number | null
  signal: string | null
  timedOut: boolean
  durationMs: number
  stdout: KeptOutput
  stderr: KeptOutput
  /** Characters of stdout, then of stderr, then of stdout, and so on, as they came. */
  order: number[]
}

/** Rejects only if the command can't be started. */
export async function runCommand(job: CommandJob, running: Set<number>): Promise<CommandResult> {
  const startedAt = performance.now()
  const { child, outputs } = await start(job)
  const run = new CommandRun(child, outputs, job)
  try {
    await run.started()
    if (child.pid !== undefined) running.add(child.pid)
    await run.ended()
    const [stdout, stderr] = keptOutputs(run)
    return {
      exitCode: child.exitCode,
      signal: child.signalCode,
      timedOut: run.timedOut,
      durationMs: Math.round(performance.now() - startedAt),
      stdout,
      stderr,
      order: run.order.of(stdout, stderr)
    }
  } finally {
    if (child.pid !== undefined) running.delete(child.pid)
    run.release()
  }
}

function keptOutputs({ stdout, stderr }: CommandRun): [KeptOutput, KeptOutput] {
  const [out, err] = [stdout.result(), stderr.result()]
  const isFitting = Buffer.byteLength(JSON.stringify([out.text, err.text])) <= MAX_JSON_BYTES
  return isFitting ? [out, err] : [stdout.result(FITTING_BYTES), stderr.result(FITTING_BYTES)]
}

type Outputs = Record<'stdout' | 'stderr', Readable>

/** If pipes are not available, uses Node's sockets; then a command can't open its own output again. */
async function start(job: CommandJob): Promise<{ child: ChildProcess; outputs: Outputs }> {
  const { file, args } = shellCall(job.command, job.outOfSight)
  const stdin = job.stdin === undefined ? 'ignore' : 'pipe'
  const pipes = await makeOutputPipes()
  const [out, err] = pipes ?? []
  try {
    const child = spawn(file, args, {
      cwd: job.cwd,
      env: job.env,
      detached: true,
      stdio: [stdin, out?.writeFd ?? 'pipe', err?.writeFd ?? 'pipe']
    })
    const outputs = { stdout: out?.reader ?? child.stdout, stderr: err?.reader ?? child.stderr }
    return { child, outputs: outputs as Outputs }
  } catch (error) {
    for (const { reader } of pipes ?? []) reader.destroy()
    throw error
  } finally {
    for (const { writeFd } of pipes ?? []) closeSync(writeFd)
  }
}

/** The group has the shell's process id. An error means that the whole group is gone. */
export function killGroup(pid: number | undefined, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (pid === undefined || pid <= 1) return
  try {
    process.kill(-pid, signal)
  } catch {}
}

class CommandRun {
  readonly stdout = new OutputKeeper(KEPT_BYTES)
  readonly stderr = new OutputKeeper(KEPT_BYTES)
  readonly order = new OutputOrder()
  timedOut = false
  readonly #child: ChildProcess
  readonly #outputs: Outputs
  readonly #job: CommandJob
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #done = Promise.withResolvers<void>()
  #quiet: NodeJS.Timeout | undefined
  #exited = false

  constructor(child: ChildProcess, outputs: Outputs, job: CommandJob) {
    this.#child = child
    this.#outputs = outputs
    this.#job = job
    for (const stream of ['stdout', 'stderr'] as const) {
      outputs[stream].on('data', (chunk: Buffer) => this.#output(stream, chunk))
      outputs[stream].on('error', () => {}) // Output before the error counts.
      outputs[stream].on('close', () => this.#onEnd())
    }
    child.stdin?.on('error', () => {}) // A command does not have to read its input.
    child.stdin?.end(job.stdin)
    child.on('exit', () => this.#onExit())
  }

  started(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#child.once('spawn', resolve)
    this.#child.once('error', reject)
    return promise
  }

  async ended(): Promise<void> {
    this.#after(this.#job.timeoutMs, () => this.#timeOut())
    this.#job.signal.addEventListener('abort', this.#abort, { once: true })
    if (this.#job.signal.aborted) this.#abort()
    await this.#done.promise
    // The shell obeyed SIGTERM, but what it started may not have.
    if (this.timedOut) killGroup(this.#child.pid, 'SIGKILL')
    this.#job.live?.end()
  }

  /** Closes streams that a background process may hold open forever. */
  release(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    clearTimeout(this.#quiet)
    this.#job.signal.removeEventListener('abort', this.#abort)
    for (const output of Object.values(this.#outputs)) output.destroy()
    this.#child.stdin?.destroy()
  }

  readonly #abort = (): void => {
    killGroup(this.#child.pid, 'SIGKILL')
    this.#after(AFTER_KILL_MS, () => this.#done.resolve())
  }

  #timeOut(): void {
    if (this.#exited) return
    this.timedOut = true
    killGroup(this.#child.pid, 'SIGTERM')
    this.#after(TERM_GRACE_MS, this.#abort)
  }

  #onExit(): void {
    this.#exited = true
    this.#after(MAX_QUIET_MS, () => this.#done.resolve())
    this.#restartQuiet()
    this.#onEnd()
  }

  #onEnd(): void {
    const { stdout, stderr } = this.#outputs
    if (this.#exited && stdout.closed && stderr.closed) this.#done.resolve()
  }

  #output(stream: 'stdout' | 'stderr', chunk: Buffer): void {
    this[stream].add(chunk)
    this.order.add(stream, chunk)
    this.#job.live?.add(stream, chunk)
    if (this.#exited) this.#restartQuiet()
  }

  #restartQuiet(): void {
    clearTimeout(this.#quiet)
    // Timers run before arrived data is read, so let that be read first.
    this.#quiet = setTimeout(() => setImmediate(() => this.#done.resolve()), QUIET_MS)
  }

  #after(ms: number, action: () => void): void {
    this.#timers.add(setTimeout(action, ms))
  }
}
