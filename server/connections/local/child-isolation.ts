/**
 * Keeps children of one user apart: each runs in a user namespace of its own, where the kernel refuses it the memory, environment and
 * streams of every process outside, and in a mount namespace where our own files are covered. Its uid, HOME, files and caches
 * stay what they are. Why this and not another uid per child: docs/decisions/0006.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Duplex } from 'node:stream'
import { AppError, messageOf } from '../../lib/errors.ts'

export interface Confinement {
  /** Folders that the child can use but neither rename nor remove, outermost first. */
  held: string[]
  /** Folders that the child sees empty and can't write to. */
  folders: string[]
  /** Files that the child sees empty, also after they are replaced. */
  files: string[]
  /** Where the command starts. */
  cwd: string
}

export interface Isolation {
  /** The words that start a command in namespaces of its own. */
  wrap(command: string, args: string[], confinement: Confinement): { command: string; args: string[] }
  /** Maps the ids of a process that was started with these words; call it once for each. */
  settle(process: ChildProcess, confinement: Confinement): Settled
  /** False: our files can't be covered on this system, so a child can read them. */
  covers: boolean
  /** For people. */
  text: string
}

export interface Settled {
  /** Covers the files again: replacing a file removes the mount that covered it. */
  coverAgain(): void
  /** Resolves when files can't be covered any more. Never, where there are none to cover again. */
  lost: Promise<void>
}

/**
 * Covers the file that each line names, until the stream ends. It runs in the child's mount namespace and may mount there, which the child
 * itself may not; the child can end it, but not use it.
 */
const GUARD = `
while IFS= read -r file <&3; do
  if [ -e "$file" ] && [ ! -c "$file" ]; then "$MOUNT" --bind /dev/null "$file" || exit 125; fi
done
`

/**
 * Says that it is inside, waits until its ids are mapped, starts the guard, holds in place (\`=FOLDER\`: a mount point can't be renamed) and
 * covers what is named before \`--\`, enters its working folder
 * again (the one it is in lies under the cover), and becomes the command.
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
 * As root, a child may still write what the kernel runs as root outside every namespace, such as the handler of core dumps or of an empty
 * control group. A mount below another keeps its own flags, so each is made read-only. Private: what is mounted there later stays outside.
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
 * undefined: this machine has no way to do it. Tries it for real, because what is refused differs from machine to machine. Rejects
 * when it could not be tried, or not in time: a busy machine must not be taken for one that can't keep servers apart.
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
  // To cover files one must be root inside. The child must not be: it could uncover them, or look into the guard.
  const leave = isRoot
    ? [setpriv, '--bounding-set', '-sys_admin,-sys_ptrace', '--']
    : [unshare, '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--']
  const inside = (id: number) => (isRoot ? '0 0 4294967295' : `${covers ? 0 : id} ${id} 1`)
  const script = SCRIPT.replace('READ_ONLY', isRoot && covers ? READ_ONLY : '').replaceAll('$MOUNT', mount)
  return {
    covers,
    text: covers
      ? 'each server in a user namespace of its own, our files covered'
      : 'each server in a user namespace of its own; our files can be read',
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
          // Without its ids it must not go on; it ends when the line does.
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
  // Nothing of it changes outside: the mounts are of the probe alone.
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
  // For want of files, memory or processes it could not even be tried.
  child.once('error', (error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' || error.code === 'EACCES' || error.code === 'EPERM'
      ? resolve(false)
      : reject(undecided(messageOf(error)))
  )
  child.once('exit', (code) => resolve(code === 42))
  const timer = setTimeout(() => {
    child.kill('SIGKILL')
    reject(undecided(`no answer within ${probeMs / 1000} s`))
  }, probeMs)
  return promise.finally(() => clearTimeout(timer))
}

function undecided(reason: string): AppError {
  const message = `Whether this system can keep servers apart could not be tried (${reason}), so none is started without "sandbox". The next start tries again.`
  return new AppError('unavailable', 'isolation_undecided', message)
}

function programOf(name: string): string | undefined {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((path) => existsSync(path))
}
