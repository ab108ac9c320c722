/**
 * Keeps children of one user apart: each runs in a user namespace of its own, where the kernel refuses it the memory, environment and
 * streams of every process outside, and in a mount namespace where our secret files are covered up. Its uid, HOME, files and caches
 * stay what they are. Why this and not another uid per child: docs/decisions/0006.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'

export interface Isolation {
  /** The words that start a command in a place of its own. */
  wrap(command: string, args: string[], hidden: string[]): { command: string; args: string[] }
  /** Says who is who inside; to be called once for each process that has started with these words. */
  settle(process: ChildProcess): void
  /** For people. */
  text: string
}

/** Tells that it is inside, waits until its ids are settled, covers the files named before `--`, and becomes the command. */
const SCRIPT = `
printf . >&3
IFS= read -r settled <&3 || exit 125
exec 3>&-
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then "$MOUNT" -t tmpfs -o size=4k,mode=0700 none "$1" || exit 125
  elif [ -e "$1" ]; then "$MOUNT" --bind /dev/null "$1" || exit 125
  fi
  shift
done
shift
exec "$@"
`
const FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']
const PROBE_MS = 3000
export const ISOLATION_FD = 3

/** undefined: this machine has no way to do it. Tries it for real, because what is refused differs from machine to machine. */
export async function findIsolation(): Promise<Isolation | undefined> {
  if (process.platform !== 'linux') return undefined
  for (const candidate of [isolation(true), isolation(false)]) {
    if (candidate && (await works(candidate))) return candidate
  }
  return undefined
}

function isolation(covers: boolean): Isolation | undefined {
  const [unshare, mount, setpriv] = ['unshare', 'mount', 'setpriv'].map(programOf)
  const [uid, gid] = [process.geteuid?.() ?? -1, process.getegid?.() ?? -1]
  if (!unshare || !mount || !setpriv || uid < 0) return undefined
  const isRoot = uid === 0
  // To cover files one must be root inside; what becomes of the child must not be, or it could uncover them.
  const leave = isRoot
    ? [setpriv, '--bounding-set', '-sys_admin', '--']
    : [unshare, '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--']
  const inside = (id: number) => (isRoot ? '0 0 4294967295' : `${covers ? 0 : id} ${id} 1`)
  return {
    text: covers
      ? 'each server in a user namespace of its own, secret files covered'
      : 'each server in a user namespace of its own',
    wrap(command, args, hidden) {
      const script = ['/bin/sh', '-c', SCRIPT.replaceAll('$MOUNT', mount), 'mcp-orchestrator-child']
      const words = covers ? [...hidden, '--', ...leave] : ['--']
      const spaces = covers ? ['--user', '--mount', '--propagation', 'unchanged'] : ['--user']
      return { command: unshare, args: [...spaces, '--', ...script, ...words, command, ...args] }
    },
    settle(child) {
      const line = child.stdio[ISOLATION_FD]
      if (!line || !('write' in line)) return
      line.on('error', () => {})
      line.once('data', () => {
        try {
          if (!isRoot) writeFileSync(`/proc/${child.pid}/setgroups`, 'deny')
          writeFileSync(`/proc/${child.pid}/uid_map`, inside(uid))
          writeFileSync(`/proc/${child.pid}/gid_map`, inside(gid))
          line.end('\n')
        } catch {
          // Without its ids it must not go on; it ends when the line does.
          line.destroy()
        }
      })
    }
  }
}

async function works(candidate: Isolation): Promise<boolean> {
  const { command, args } = candidate.wrap('/bin/sh', ['-c', 'exit 42'], ['/dev/null'])
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'], timeout: PROBE_MS, env: {} })
  return new Promise((done) => {
    child.once('spawn', () => candidate.settle(child))
    child.once('error', () => done(false))
    child.once('exit', (code) => done(code === 42))
  })
}

function programOf(name: string): string | undefined {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((path) => existsSync(path))
}
