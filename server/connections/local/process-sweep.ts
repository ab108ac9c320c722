/**
 * Ends a child with everything it started, also what ignores SIGTERM or has left the process group. A process is ours when its
 * environment carries our mark, when it lives in a session that such a process opened, or descends from one: nothing else is
 * ever touched. The work is a shell script, because it must also be done when this process has been killed.
 */
import { spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'

/** The variable by which a process is known as a child of ours; its value ends with a dot, so that none is a part of another. */
export const MARK = 'MCP_ORCHESTRATOR_CHILD'
/** Of a tenth of a second each. */
const TERM_ROUNDS = 6
const MAX_SWEEP_MS = 15_000
const AGAIN_MS = 1000

/**
 * Waits for the end of its input, then sweeps: SIGTERM, a moment, SIGKILL until none is left. Where there is no /proc, process
 * groups are what can be ended; their numbers come in as lines, `+` at the start and `-` at the end of each.
 */
const SCRIPT = `
mark=$1
groups=' '
trap '' HUP INT TERM
while IFS= read -r line; do
  case $line in
    +[0-9]*) groups="$groups\${line#+} " ;;
    -[0-9]*) groups="\${groups%% \${line#-} *} \${groups#* \${line#-} }" ;;
  esac
done
stat() {
  { IFS= read -r text < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- \${text##*) }
  state=$1 parent=$2 session=$4
  case "$parent$session" in ''|*[!0-9]*) return 1 ;; esac
  [ "$state" != Z ]
}
find_ours() {
  ours=' ' sessions=' '
  for file in $(grep -lsF -- "$mark" /proc/[0-9]*/environ 2>/dev/null); do
    pid=\${file#/proc/}; pid=\${pid%/environ}
    if stat "$pid" && [ "$session" -gt 1 ]; then sessions="$sessions$session "; ours="$ours$pid "; fi
  done
  [ "$ours" != ' ' ] || return 1
  grown=1
  while [ -n "$grown" ]; do
    grown=
    for dir in /proc/[0-9]*; do
      pid=\${dir#/proc/}
      case "$ours" in *" $pid "*) continue ;; esac
      if [ "$pid" = $$ ] || [ "$pid" -le 1 ]; then continue; fi
      stat "$pid" || continue
      case "$sessions" in *" $session "*) ours="$ours$pid "; grown=1; continue ;; esac
      case "$ours" in *" $parent "*) ours="$ours$pid "; grown=1 ;; esac
    done
  done
}
send() {
  if [ -d /proc/self ]; then
    find_ours || return 1
    for pid in $ours; do kill "-$1" "$pid" 2>/dev/null; done
  else
    some=1
    for group in $groups; do kill "-$1" -- "-$group" 2>/dev/null && some=0; done
    return $some
  fi
}
send TERM || exit 0
rounds=${TERM_ROUNDS}
while [ $rounds -gt 0 ]; do
  sleep 0.1 2>/dev/null || sleep 1
  left=
  for pid in $ours; do if stat "$pid"; then left=1; break; fi; done
  if [ -d /proc/self ] && [ -z "$left" ]; then break; fi
  rounds=$((rounds - 1))
done
rounds=20
while [ $rounds -gt 0 ] && send KILL; do
  sleep 0.1 2>/dev/null || sleep 1
  rounds=$((rounds - 1))
done
`

export interface Sweep {
  /** Tells of a child's process group, where only these can be ended. */
  began(pid: number): void
  ended(pid: number): void
  /** Sweeps now; resolves when nothing is left. */
  go(): Promise<void>
  /** Resolves when the script has ended, for whatever reason. */
  readonly gone: Promise<void>
}

/** Starts the script in a session of its own; it sweeps when told to, or when this process is gone. */
export function prepareSweep(mark: string, path: string): Sweep {
  const script = spawn('/bin/sh', ['-c', SCRIPT, 'mcp-orchestrator-sweep', mark], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: path }
  })
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  // Who could not start it tries again, which must not be at once and without end.
  script.on('error', () => setTimeout(resolve, AGAIN_MS).unref())
  script.on('exit', () => resolve())
  // There is none when this process may open no more files.
  const stdin: Writable | undefined = script.stdin
  stdin?.on('error', () => {})
  // It must not keep this process alive: when we end, its work begins.
  script.unref()
  if (stdin && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
  return {
    began: (pid) => void stdin?.write(`+${pid}\n`),
    ended: (pid) => void stdin?.write(`-${pid}\n`),
    async go() {
      script.ref()
      stdin?.end()
      await Promise.race([gone, delay(MAX_SWEEP_MS, undefined, { ref: false })])
    },
    gone
  }
}
