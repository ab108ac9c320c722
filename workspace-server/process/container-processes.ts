/**
 * Ends all other processes in our container. It never acts outside of one: unless PID 1 is our idle init, every call does
 * nothing.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { INSIDE } from '../protocol.ts'

const ROUND_MS = 10

/** How to read the process table and send signals; tests pass their own. */
export interface ProcessTable {
  pids(): number[]
  /** Arguments separated by NUL; empty if the process is gone. */
  commandLine(pid: number): string
  /** The state letter of /proc/PID/stat, which is that of its first thread. `Z` is a zombie, undefined means gone. */
  state(pid: number): string | undefined
  /** Number of threads: a zombie with more than one is still working. */
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

/** Whether PID 1 is the engine's init running our idle script, or the idle script itself. */
export function insideOurContainer(table: ProcessTable = procTable): boolean {
  return isIdle(table.commandLine(1))
}

/**
 * Kills every process except PID 1, the idle init and ourselves, in several rounds because a process may fork in between. It
 * stops all of them first: a fork bomb refills every place that a kill frees, but not while all are stopped. Returns true if none
 * is left. `mayContinue` is asked before each round.
 */
export async function endOtherProcesses(
  options: { deadlineMs: number; mayContinue?: () => boolean; self?: number },
  table: ProcessTable = procTable
): Promise<boolean> {
  if (!insideOurContainer(table)) return true
  const { deadlineMs, mayContinue = () => true, self = process.pid } = options
  const spared = new Set([1, self, idlePid(table)])
  const end = performance.now() + deadlineMs
  // Not every stopped process looks stopped: one that waits for a child's exec does not, nor one whose first thread has ended.
  const endOfStopping = performance.now() + deadlineMs / 2
  while (mayContinue()) {
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

/** Whether anything runs in our container besides PID 1, the idle init and ourselves. */
export function hasOtherProcesses(self = process.pid, table: ProcessTable = procTable): boolean {
  if (!insideOurContainer(table)) return false
  const spared = new Set([1, self, idlePid(table)])
  return table.pids().some((pid) => !spared.has(pid) && isAlive(table, pid))
}

/**
 * The idle script below the first process, which is the engine's init (`init -- idle SECONDS`) or the script itself. It has the lowest
 * process id of all matches, because it came first and low ids are not reused; any later process with the script in its arguments is a
 * command in disguise.
 */
function idlePid(table: ProcessTable): number {
  const candidates = table.pids().filter((pid) => pid !== 1 && isIdle(table.commandLine(pid)))
  return candidates.reduce((lowest, pid) => Math.min(lowest, pid), Number.MAX_SAFE_INTEGER)
}

function isAlive(table: ProcessTable, pid: number): boolean {
  const state = table.state(pid)
  return state === 'Z' ? table.threads(pid) > 1 : state !== undefined && state !== 'X'
}

/** Stopped by a signal, or by a debugger, which is stopped as well. */
function isStopped(table: ProcessTable, pid: number): boolean {
  return ['T', 't'].includes(table.state(pid) ?? '')
}

/** Returns false for what can't be an owner's server: already gone, or another user's (someone looking in from outside). */
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

/** The fields after the command's name, which may contain anything; the first is the state. */
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
