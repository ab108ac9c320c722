/**
 * Stops a child and everything that it started, even what ignores SIGTERM or has left the process group. A process is ours if its
 * environment has our mark, if it is in a session that such a process opened, or if it descends from one; no other process is
 * touched. A shell script does the work, because it must also run after this process was killed.
 */
import { spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { SYSTEM_PATH } from '../../lib/system-path.ts'

/** The variable that marks a process as our child. Its value ends with a dot, so that no value is a prefix of another. */
export const MARK = 'MCP_ORCHESTRATOR_CHILD'
/** Rounds of a tenth of a second. */
const TERM_ROUNDS = 6
const MAX_SWEEP_MS = 15_000
const AGAIN_MS = 1000

/**
 * Waits for the end of its input, then sweeps: SIGTERM, a moment, SIGKILL until none is left. Without /proc only process groups
 * can be stopped; their numbers come in as lines, with `+` when one starts and `-` when it ends.
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

export type Sweep = ReturnType<typeof prepareSweep>

/** Starts the script in its own session. It sweeps on request, or when this process is gone. */
export function prepareSweep(mark: string) {
  const script = spawn('/bin/sh', ['-c', SCRIPT, 'mcp-orchestrator-sweep', mark], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: SYSTEM_PATH }
  })
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  // The caller retries, but not at once and in a tight loop.
  script.on('error', () => setTimeout(resolve, AGAIN_MS).unref())
  script.on('exit', () => resolve())
  // undefined if this process can't open more files.
  const stdin: Writable | undefined = script.stdin
  stdin?.on('error', () => {})
  // It must not keep this process alive: its work begins when we end.
  script.unref()
  if (stdin && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
  return {
    /** Registers a child's process group, for systems without /proc. */
    began: (pid: number) => void stdin?.write(`+${pid}\n`),
    ended: (pid: number) => void stdin?.write(`-${pid}\n`),
    /** Sweeps now; resolves when nothing is left. */
    async go(): Promise<void> {
      script.ref()
      stdin?.end()
      await Promise.race([gone, delay(MAX_SWEEP_MS, undefined, { ref: false })])
    },
    /** Resolves when the script has ended, for whatever reason. */
    gone
  }
}
