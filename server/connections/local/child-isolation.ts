/**
 * Isolates the children of one user from each other: each runs in its own user namespace, where the kernel refuses access to the
 * memory, environment and streams of every process outside, in a mount namespace where our own files are covered, and in a PID
 * namespace, which no signal leaves. Its uid, HOME, files and caches are unchanged. docs/decisions/0006 says why not a uid per child.
 */
import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { SYSTEM_FOLDERS } from '../../lib/system-path.ts'
import { carryEnvironment } from './carry-environment.ts'
import { EXEC, GUARD, INIT, LIMITS, PROC, READ_ONLY, SCRIPT, SPLIT } from './child-scripts.ts'
import { MARK } from './process-sweep.ts'

export interface Confinement {
  /** Folders that the child can use but neither rename nor remove, outermost first. */
  held: string[]
  /** Folders that look empty to the child, and that it can't write to. */
  folders: string[]
  /** Files that look empty to the child, even after they are replaced. */
  files: string[]
  /** Files and folders that are hidden like these, also those that appear later. */
  engines: string[]
  /** Files and folders that the child can read but not change. */
  readOnly: string[]
  /** Those of `readOnly` that others may replace: the child sees the new one empty. */
  replaceable: string[]
  /** The working folder of the command. */
  cwd: string
}

export interface Isolation {
  /** Returns what starts a command in its own namespaces. */
  wrap(child: { command: string; args: string[]; env: Record<string, string> }, confinement: Confinement): Wrapped
  /** Maps the user ids of a process that `wrap`'s command line started. Call it once per process. */
  settle(process: ChildProcess, confinement: Confinement): Settled
  /** False if our files can't be covered on this system, so that a child can read them. */
  covers: boolean
  /** True only where files are covered too. False if a child can send signals to processes of its user that are outside. */
  holdsSignals: boolean
  /** The name of its extent. */
  extent: string
  /** Description for people. */
  text: string
}

interface Wrapped {
  command: string
  args: string[]
  env: Record<string, string>
}

export interface Settled {
  /** Covers the files again: replacing a file removes the mount that covered it. */
  coverAgain(): void
  /** Resolves when the files can no longer be covered. Never, if there are none to cover again. */
  lost: Promise<void>
  /** The process of the command, once it is known. It is not the process that was started if there is a PID namespace. */
  pid(): number | undefined
  /** Why its ids could not be mapped. */
  failure(): unknown
}

/** A degree of isolation to try. */
export interface Extent {
  name: string
  covers: boolean
  /** With a PID namespace, and with its own /proc or not: a /proc of which parts are hidden can't be mounted again. */
  pids?: 'own proc' | 'same proc'
}

/** Far more than the guard needs on a busy machine. */
const COVER_MS = 10_000
const ISOLATION_FD = 3

/** Undefined if a program that it needs is not there. */
export function isolation(extent: Extent): Isolation | undefined {
  const { covers, pids } = extent
  const [unshare, mount, setpriv, envProgram] = ['unshare', 'mount', 'setpriv', 'env'].map(programOf)
  const [uid, gid] = [process.geteuid?.() ?? -1, process.getegid?.() ?? -1]
  if (!unshare || !mount || !setpriv || !envProgram || uid < 0) return undefined
  const isRoot = uid === 0
  // System V memory and queues. Programs share some of it with their X server.
  const hasIpc = existsSync('/proc/self/ns/ipc')
  // Covering files needs root inside. The child must not have it: it could uncover them, or look into the guard.
  const leave = isRoot
    ? [setpriv, '--bounding-set', '-sys_admin,-sys_ptrace', '--']
    : [unshare, '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--']
  const inside = (id: number) => (isRoot ? '0 0 4294967295' : `${covers ? 0 : id} ${id} 1`)
  const fill = (script: string) =>
    script.replaceAll('$MOUNT', mount).replaceAll('$UNSHARE', unshare).replaceAll('$ENV', envProgram)
  const script = fill(scriptFor(extent, isRoot))
  return {
    extent: extent.name,
    covers,
    holdsSignals: pids !== undefined,
    text: describeExtent(extent),
    wrap({ command, args, env }, confinement) {
      const { held, folders, files, engines, readOnly, cwd } = confinement
      const guard = covers && guardedPaths(confinement).length > 0 ? fill(GUARD) : ''
      const sh = ['/bin/sh', '-c', script, 'mcp-orchestrator-child', guard, cwd]
      const places = [
        ...held.map((path) => `=${path}`),
        ...readOnly.map((path) => `+${path}`),
        ...folders,
        ...files,
        ...engines
      ]
      const words = covers ? [...places, '--', ...leave] : ['--']
      const spaces = covers ? ['--user', '--mount', '--propagation', 'unchanged'] : ['--user']
      if (hasIpc && env.DISPLAY === undefined) spaces.push('--ipc')
      const carried = carryEnvironment(env, [MARK])
      const started = [...sh, ...words, ...carried.before, command, ...args]
      return { command: unshare, args: [...spaces, '--', ...started], env: carried.env }
    },
    settle(child, confinement) {
      const mapIds = () => {
        if (!isRoot) writeFileSync(`/proc/${child.pid}/setgroups`, 'deny')
        writeFileSync(`/proc/${child.pid}/uid_map`, inside(uid))
        writeFileSync(`/proc/${child.pid}/gid_map`, inside(gid))
      }
      return settle(child, {
        mapIds,
        isSplit: pids !== undefined,
        guarded: covers ? guardedPaths(confinement) : []
      })
    }
  }
}

/** As the guard reads them. */
function guardedPaths({ files, engines, replaceable }: Confinement): string[] {
  return [...files, ...engines, ...replaceable.map((path) => `+${path}`)]
}

function scriptFor({ covers, pids }: Extent, isRoot: boolean): string {
  const init = INIT.replace('LIMITS', isRoot ? '' : LIMITS).replace('PROC', pids === 'own proc' ? PROC : '')
  const start = pids === undefined ? EXEC : SPLIT.replace('INIT', () => init)
  return SCRIPT.replace('READ_ONLY', isRoot && covers ? READ_ONLY : '').replace('START', () => start)
}

function describeExtent({ covers, pids }: Extent): string {
  if (!covers) return 'each server has its own user namespace; our files can be read'
  return pids === undefined
    ? 'each server has its own user namespace, and our files are hidden; servers can signal the processes of this user'
    : 'each server has its own user and PID namespaces, and our files are hidden'
}

interface SettleOptions {
  mapIds(): void
  /** The command is a grandchild of the process that was started. */
  isSplit: boolean
  guarded: string[]
}

function settle(child: ChildProcess, { mapIds, isSplit, guarded }: SettleOptions): Settled {
  const line = child.stdio[ISOLATION_FD] as Duplex | null | undefined
  const isGuarded = guarded.length > 0
  let pid = isSplit ? undefined : child.pid
  let failure: unknown
  let isMapped = false
  const state = { pid: () => pid, failure: () => failure }
  if (!line) return { coverAgain: () => {}, lost: Promise.resolve(), ...state }
  let waiting: NodeJS.Timeout | undefined
  const onSign = (sign: string) => {
    if (sign === '.') {
      mapIds()
      if (isGuarded || isSplit) line.write('\n')
      else line.end('\n')
      isMapped = true
    } else if (sign === '+') pid = firstChildOf(firstChildOf(child.pid))
    else {
      clearTimeout(waiting)
      waiting = undefined
    }
  }
  line.on('error', () => {})
  line.on('data', (signs: Buffer) => {
    try {
      for (const sign of signs.toString('latin1')) onSign(sign)
    } catch (error) {
      failure = error
      // A child without its ids must not go on. It ends as soon as this line is closed.
      line.destroy()
    }
  })
  line.once('close', () => clearTimeout(waiting))
  child.once('exit', () => line.end())
  if (!isGuarded) return { coverAgain: () => {}, lost: new Promise(() => {}), ...state }
  const coverAgain = () => {
    // Nothing is covered yet, and the line would be taken for the sign that the ids are mapped.
    if (!isMapped || !line.writable) return
    line.write(`${guarded.map((file) => `${file}\n`).join('')}\n`)
    // A guard that was stopped does not answer: the files are as open as if it had ended.
    waiting ??= setTimeout(() => line.destroy(), COVER_MS).unref()
  }
  return { coverAgain, lost: new Promise((resolve) => line.once('close', resolve)), ...state }
}

function firstChildOf(pid: number | undefined): number | undefined {
  try {
    const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ')
    return Number(first) || undefined
  } catch {
    // It has ended already, or this kernel does not tell.
    return undefined
  }
}

function programOf(name: string): string | undefined {
  return SYSTEM_FOLDERS.map((folder) => `${folder}/${name}`).find((path) => existsSync(path))
}
