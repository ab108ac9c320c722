/**
 * Isolates the children of one user from each other: each runs in its own user namespace, where the kernel refuses access to the
 * memory, environment and streams of every process outside, and in a mount namespace where our own files are covered. Its uid,
 * HOME, files and caches are unchanged. docs/decisions/0006 says why not a uid per child.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Duplex } from 'node:stream'
import { AppError, hasCode, messageOf } from '../../lib/errors.ts'

export interface Confinement {
  /** Folders that the child can use but neither rename nor remove, outermost first. */
  held: string[]
  /** Folders that look empty to the child, and that it can't write to. */
  folders: string[]
  /** Files that look empty to the child, even after they are replaced. */
  files: string[]
  /** Where the command starts. */
  cwd: string
}

export interface Isolation {
  /** Returns the command line that starts a command in its own namespaces. */
  wrap(command: string, args: string[], confinement: Confinement): { command: string; args: string[] }
  /** Maps the user ids of a process that `wrap`'s command line started. Call it once per process. */
  settle(process: ChildProcess, confinement: Confinement): Settled
  /** False if our files can't be covered on this system, so that a child can read them. */
  covers: boolean
  /** Description for people. */
  text: string
}

export interface Settled {
  /** Covers the files again: replacing a file removes the mount that covered it. */
  coverAgain(): void
  /** Resolves when the files can no longer be covered. Never, if there are none to cover again. */
  lost: Promise<void>
}

/**
 * Covers the file that each input line names, until the input ends. It runs in the child's mount namespace with the right to
 * mount, which the child lacks; the child can kill it, but not use it.
 */
const GUARD = `
while IFS= read -r file <&3; do
  if [ -e "$file" ] && [ ! -c "$file" ]; then "$MOUNT" --bind /dev/null "$file" || exit 125; fi
done
`

/**
 * Reports that it is inside, waits until its ids are mapped, starts the guard, holds folders in place (\`=FOLDER\`: a mount point
 * can't be renamed), covers what is named before \`--\`, enters its working folder again (the current one is under the cover),
 * and becomes the command.
 */
const SCRIPT = `
printf . >&3
IFS= read -r settled <&3 || exit 125
guard=$1 cwd=$2
shift 2
if [ -n "$guard" ]; then ( /bin/sh -c "$guard" mcp-orchestrator-guard </dev/null >/dev/null 2>&1 & ); fi
exec 3>&-
while [ "$1" != -- ]; do
  folder=\${1#=}
  if [ "$folder" != "$1" ]; then
    if [ -d "$folder" ]; then "$MOUNT" --rbind "$folder" "$folder" || exit 125; fi
  elif [ -d "$1" ]; then "$MOUNT" -t tmpfs -o ro,size=4k,mode=0755 none "$1" || exit 125
  elif [ -e "$1" ] && [ ! -c "$1" ]; then "$MOUNT" --bind /dev/null "$1" || exit 125
  fi
  shift
done
shift
READ_ONLY
cd -- "$cwd" 2>/dev/null || cd / || exit 125
unset OLDPWD
exec "$@"
`

/**
 * As root, a child could still write settings that the kernel runs as root outside every namespace, such as the handler of core
 * dumps or of an empty control group. A mount below another keeps its own flags, so each is made read-only. Private: later mounts
 * there stay outside.
 */
const READ_ONLY = `
for path in /proc/sys /proc/sysrq-trigger /sys; do
  if [ -e "$path" ]; then
    "$MOUNT" --rbind "$path" "$path" && "$MOUNT" --make-rprivate "$path" || exit 125
    "$MOUNT" -o remount,bind,ro,nosuid,nodev,noexec "$path" || exit 125
  fi
done
while read -r id parent device root at rest; do
  case "$at $rest" in
    *' - autofs '*) ;;
    /sys/*|/proc/sys/*|*' - cgroup '*|*' - cgroup2 '*)
      "$MOUNT" -o remount,bind,ro,nosuid,nodev,noexec "$at" || exit 125 ;;
  esac
done </proc/self/mountinfo
`
const FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']
/** Far more than a probe needs on a busy machine. */
const PROBE_MS = 20_000
const ISOLATION_FD = 3

/**
 * Resolves to undefined if this machine can't isolate children. Tries it for real, because machines refuse different things.
 * Rejects if it could not be tried in time: a busy machine must not be taken for one that can't isolate.
 */
export async function findIsolation(probeMs = PROBE_MS): Promise<Isolation | undefined> {
  if (process.platform !== 'linux') return undefined
  for (const candidate of [isolation(true), isolation(false)]) {
    if (candidate && (await works(candidate, probeMs))) return candidate
  }
  return undefined
}

function isolation(covers: boolean): Isolation | undefined {
  const [unshare, mount, setpriv] = ['unshare', 'mount', 'setpriv'].map(programOf)
  const [uid, gid] = [process.geteuid?.() ?? -1, process.getegid?.() ?? -1]
  if (!unshare || !mount || !setpriv || uid < 0) return undefined
  const isRoot = uid === 0
  // Covering files needs root inside. The child must not be root: it could uncover them, or inspect the guard.
  const leave = isRoot
    ? [setpriv, '--bounding-set', '-sys_admin,-sys_ptrace', '--']
    : [unshare, '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--']
  const inside = (id: number) => (isRoot ? '0 0 4294967295' : `${covers ? 0 : id} ${id} 1`)
  const script = SCRIPT.replace('READ_ONLY', isRoot && covers ? READ_ONLY : '').replaceAll('$MOUNT', mount)
  return {
    covers,
    text: covers
      ? 'each server in its own user namespace, our files hidden'
      : 'each server in its own user namespace; our files can be read',
    wrap(command, args, { held, folders, files, cwd }) {
      const guard = covers && files.length > 0 ? GUARD.replaceAll('$MOUNT', mount) : ''
      const sh = ['/bin/sh', '-c', script, 'mcp-orchestrator-child', guard, cwd]
      const words = covers ? [...held.map((folder) => `=${folder}`), ...folders, ...files, '--', ...leave] : ['--']
      const spaces = covers ? ['--user', '--mount', '--propagation', 'unchanged'] : ['--user']
      return { command: unshare, args: [...spaces, '--', ...sh, ...words, command, ...args] }
    },
    settle(child, { files }) {
      const line = child.stdio[ISOLATION_FD] as Duplex | null | undefined
      const isGuarded = covers && files.length > 0
      if (!line) return { coverAgain: () => {}, lost: Promise.resolve() }
      line.on('error', () => {})
      line.once('data', () => {
        try {
          if (!isRoot) writeFileSync(`/proc/${child.pid}/setgroups`, 'deny')
          writeFileSync(`/proc/${child.pid}/uid_map`, inside(uid))
          writeFileSync(`/proc/${child.pid}/gid_map`, inside(gid))
          if (isGuarded) line.write('\n')
          else line.end('\n')
        } catch {
          // Without its ids it must not continue; it exits when the pipe closes.
          line.destroy()
        }
      })
      if (!isGuarded) return { coverAgain: () => {}, lost: new Promise(() => {}) }
      child.once('exit', () => line.end())
      return {
        coverAgain: () => void (line.writable && line.write(files.map((file) => `${file}\n`).join(''))),
        lost: new Promise((resolve) => line.once('close', resolve))
      }
    }
  }
}

async function works(candidate: Isolation, probeMs: number): Promise<boolean> {
  // Changes nothing outside: the mounts belong to the probe.
  const confinement = {
    held: [tmpdir()],
    folders: [tmpdir()],
    files: candidate.covers ? [process.execPath] : [],
    cwd: '/'
  }
  const { command, args } = candidate.wrap('/bin/sh', ['-c', 'exit 42'], confinement)
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'], env: {} })
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  child.once('spawn', () => candidate.settle(child, confinement))
  // It could not be tried for lack of files, memory or processes.
  child.once('error', (error) =>
    hasCode(error, 'ENOENT', 'EACCES', 'EPERM') ? resolve(false) : reject(undecided(messageOf(error)))
  )
  child.once('exit', (code) => resolve(code === 42))
  const timer = setTimeout(() => {
    child.kill('SIGKILL')
    reject(undecided(`no answer within ${probeMs / 1000} s`))
  }, probeMs)
  return promise.finally(() => clearTimeout(timer))
}

function undecided(reason: string): AppError {
  const message = `Could not check whether this system can isolate servers (${reason}), so no server without "sandbox" is started. The next start checks again.`
  return new AppError('unavailable', 'isolation_undecided', message)
}

function programOf(name: string): string | undefined {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((path) => existsSync(path))
}
