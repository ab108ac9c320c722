/**
 * Stops a child and everything that it started, even what ignores SIGTERM or has left the process group. A process is ours if it runs as
 * our user and its environment has our mark, if it is in a session that such a process opened, or if it descends from one; no other
 * process is touched. A shell script does the work, because it must also run after this process was killed.
 */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { SYSTEM_PATH } from '../../lib/system-path.ts'

/** The variable that marks a process as our child. Its value ends with a dot, so that no value is a prefix of another. */
export const MARK = 'MCP_ORCHESTRATOR_CHILD'
/** Rounds of a tenth of a second. */
const TERM_ROUNDS = 6
/** Searches of /proc before a signal. If more processes are found each time, those that are known are held, so that they start no others. */
const FREE_SEARCHES = 5
const MAX_SEARCHES = 50
/** Each takes at least as long as it takes to look through /proc. */
const MAX_TRIES = 100
const MAX_SWEEP_MS = 15_000
const AGAIN_MS = 1000

/**
 * Reads the mark, which must be in no command line, because other users can read those. Waits for the end of its input, then sweeps:
 * SIGTERM, a moment, SIGKILL until none is left. The numbers of sessions come in as lines, with `+` when one starts and `-` when it ends.
 * Without /proc only process groups can be stopped.
 *
 * If no process can be started, perhaps because of those that are to be stopped, the shell ends. It then kills what is in these sessions,
 * which it can do by itself, and begins again. That includes the first process of a PID namespace, with which all others there end.
 */
const SCRIPT = `
trap '' HUP INT TERM
script=$1 tries=\${2:-0}
if [ "$tries" = 0 ]; then
  groups=' '
  IFS= read -r mark || exit 0
  while IFS= read -r line; do
    case $line in
      +[0-9]*) groups="$groups\${line#+} " ;;
      -[0-9]*) groups="\${groups%% \${line#-} *} \${groups#* \${line#-} }" ;;
    esac
  done
else mark=$SWEEP_MARK groups=$SWEEP_GROUPS
fi
unset SWEEP_MARK SWEEP_GROUPS
stat() {
  { IFS= read -r text < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- \${text##*) }
  state=$1 parent=$2 session=$4
  case "$parent$session" in ''|*[!0-9]*) return 1 ;; esac
  [ "$state" != Z ]
}
user_of() {
  user=
  { while read -r name user rest; do [ "$name" != Uid: ] || return 0; done < "/proc/$1/status"; } 2>/dev/null
  return 1
}
user_of $$ && me=$user
find_marked() {
  files=$(grep -lsFf - /proc/[0-9]*/environ 2>/dev/null <<END
$mark
END
)
  [ $? -lt 126 ] || exit
  for file in $files; do
    pid=\${file#/proc/}; pid=\${pid%/environ}
    if [ "$pid" != $$ ] && user_of "$pid" && [ "$user" = "$me" ] && stat "$pid" && [ "$session" -gt 1 ]; then ours="$ours$pid "; fi
  done
  # Another program may have started a process with the mark in its own session.
  for pid in $ours; do
    stat "$pid" || continue
    case "$ours$groups" in *" $session "*) ;; *) [ ! -d "/proc/$session" ] || continue ;; esac
    sessions="$sessions$session "
  done
}
find_ours() {
  ours=' ' sessions=$groups
  [ -n "$1" ] || find_marked
  [ "$ours$sessions" != '  ' ] || return 1
  grown=1 searches=0
  while [ -n "$grown" ] && [ $searches -lt ${MAX_SEARCHES} ]; do
    [ $searches -lt ${FREE_SEARCHES} ] || kill -STOP $ours 2>/dev/null
    grown= searches=$((searches + 1))
    for dir in /proc/[0-9]*; do
      pid=\${dir#/proc/}
      case "$ours" in *" $pid "*) continue ;; esac
      if [ "$pid" = $$ ] || [ "$pid" -le 1 ]; then continue; fi
      stat "$pid" || continue
      case "$sessions" in *" $session "*) ours="$ours$pid "; grown=1; continue ;; esac
      case "$ours" in *" $parent "*) ours="$ours$pid "; grown=1 ;; esac
    done
  done
  [ "$ours" != ' ' ]
}
send() {
  if [ -d /proc/self ]; then
    find_ours $2 || return 1
    for pid in $ours; do kill "-$1" "$pid" 2>/dev/null; done
    [ $searches -le ${FREE_SEARCHES} ] || kill -CONT $ours 2>/dev/null
    # One that has just ended by itself says nothing about the others.
    return 0
  else
    some=1
    for group in $groups; do kill "-$1" -- "-$group" 2>/dev/null && some=0; done
    return $some
  fi
}
begin_again() {
  trap - EXIT
  send KILL without_mark
  [ "$tries" -lt ${MAX_TRIES} ] || exit
  export SWEEP_MARK="$mark" SWEEP_GROUPS="$groups"
  exec /bin/sh -c "$script" mcp-orchestrator-sweep "$script" $((tries + 1))
}
trap begin_again EXIT
if send TERM; then
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
fi
trap - EXIT
`

export type Sweep = ReturnType<typeof prepareSweep>

/** Starts the script in its own session. It sweeps on request, or when this process is gone. */
export function prepareSweep(mark: string) {
  const script = spawn('/bin/sh', ['-c', SCRIPT, 'mcp-orchestrator-sweep', SCRIPT], {
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
  stdin?.write(`${mark}\n`)
  const sessions = new Set<number>()
  // It must not keep this process alive: its work begins when we end.
  script.unref()
  if (stdin && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
  return {
    /** Registers the first process of a child, which leads its session and its process group. */
    began(pid: number): void {
      sessions.add(pid)
      stdin?.write(`+${pid}\n`)
    },
    ended(pid: number): void {
      sessions.delete(pid)
      stdin?.write(`-${pid}\n`)
    },
    /** Sweeps now; resolves when nothing is left. */
    async go(): Promise<void> {
      // No process can be started, perhaps because of those that are to be stopped.
      if (script.pid === undefined) endSessions(sessions)
      script.ref()
      stdin?.end()
      await Promise.race([gone, delay(MAX_SWEEP_MS, undefined, { ref: false })])
    },
    /** Resolves when the script has ended, for whatever reason. */
    gone
  }
}

function endSessions(sessions: Set<number>): void {
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      const [, , , session] = readFileSync(`/proc/${name}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ')
      if (sessions.has(Number(session))) process.kill(Number(name), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}
