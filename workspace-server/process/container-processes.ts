/**
 * Ends what else runs in our container. Never does anything outside one: unless PID 1 is our idle init, every call is a no-op.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { INSIDE } from '../protocol.ts'

const ROUND_MS = 10

/** How the process table is read and signalled; the tests give their own. */
export interface ProcessTable {
  pids(): number[]
  /** Arguments separated by NUL; empty when the process is gone. */
  commandLine(pid: number): string
  /** The state letter of /proc/PID/stat, which is that of its first thread; `Z` is a zombie, undefined is gone. */
  state(pid: number): string | undefined
  /** How many threads it has: a zombie with more than one goes on working. */
  threads(pid: number): number
  kill(pid: number, signal: 'SIGSTOP' | 'SIGKILL'): void
}

export const procTable: ProcessTable = {
  pids: () => readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : [])),
  commandLine: (pid) => readOrEmpty(`/proc/${pid}/cmdline`),
  state: (pid) => statFields(pid)[0],
  threads: (pid) => Number(statFields(pid)[17] ?? 0),
  kill: (pid, signal) => process.kill(pid, signal)
}

/** PID 1 is the engine's init running our idle script, or the idle script itself. */
export function insideOurContainer(table: ProcessTable = procTable): boolean {
  return isIdle(table.commandLine(1))
}

/**
 * Kills every process but PID 1, the idle init and ourselves, round after round because a process may fork between two looks.
 * First they are all stopped: a fork bomb fills every place that killing one of it makes free, but none while all are kept.
 * True when none is left. `mayGoOn` is asked before each round.
 */
export async function endOtherProcesses(
  options: { deadlineMs: number; mayGoOn?: () => boolean; self?: number },
  table: ProcessTable = procTable
): Promise<boolean> {
  if (!insideOurContainer(table)) return true
  const { deadlineMs, mayGoOn = () => true, self = process.pid } = options
  const spared = new Set([1, self, idlePid(table)])
  const end = performance.now() + deadlineMs
  // Not all show that they are stopped: who waits for a child to exec does not, nor one whose first thread has ended.
  const endOfStopping = performance.now() + deadlineMs / 2
  while (mayGoOn()) {
    const others = table.pids().filter((pid) => !spared.has(pid) && isAlive(table, pid))
    const running = others.filter((pid) => !isStopped(table, pid) && signalled(table, pid, 'SIGSTOP'))
    if (running.length > 0 && performance.now() < endOfStopping) {
      await delay(1)
      continue
    }
    const stubborn = others.filter((pid) => signalled(table, pid, 'SIGKILL'))
    if (stubborn.length === 0) return true
    if (performance.now() >= end) return false
    await delay(ROUND_MS)
  }
  return false
}

/**
 * The idle script under the engine's init (`init -- idle SECONDS`): the lowest such process id, because it came first and low ids
 * are not given out again; any later process that names the script in its arguments is a command in disguise.
 */
function idlePid(table: ProcessTable): number {
  if (!table.commandLine(1).split('\0').includes('--')) return 1
  const candidates = table.pids().filter((pid) => pid !== 1 && isIdle(table.commandLine(pid)))
  return candidates.reduce((lowest, pid) => Math.min(lowest, pid), Number.MAX_SAFE_INTEGER)
}

function isAlive(table: ProcessTable, pid: number): boolean {
  const state = table.state(pid)
  return state === 'Z' ? table.threads(pid) > 1 : state !== undefined && state !== 'X'
}

/** By a signal, or by its debugger, which is stopped as well. */
function isStopped(table: ProcessTable, pid: number): boolean {
  return ['T', 't'].includes(table.state(pid) ?? '')
}

/** False for what can't be an owner's server: already gone, or another user's (someone looking in from outside). */
function signalled(table: ProcessTable, pid: number, signal: 'SIGSTOP' | 'SIGKILL'): boolean {
  try {
    table.kill(pid, signal)
    return true
  } catch {
    return false
  }
}

function isIdle(commandLine: string): boolean {
  return commandLine.split('\0').includes(INSIDE.idle)
}

/** Those behind the command's name, which may hold anything; the first is the state. */
function statFields(pid: number): string[] {
  const stat = readOrEmpty(`/proc/${pid}/stat`)
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
