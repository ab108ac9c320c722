import { INSIDE } from '../../../../workspace-server/protocol.ts'

/** How often we send a heartbeat to the supervisor, and how long it waits for one. */
export const HEARTBEAT_MS = 15_000
const SILENCE_SECONDS = 90

/**
 * The first process of a child's container. It lives as long as its input, which ends with the gateway, however the gateway
 * ended. Silence counts as an end too, because a broken network may never be reported. Then every process gets a SIGTERM and a
 * moment to finish. When this process exits, the kernel ends the rest and the engine removes the container. It forks nothing
 * while it waits, so a child that has used up all processes can't block it.
 */
export const SUPERVISE = `
trap '' TERM HUP INT
while read -r -t ${SILENCE_SECONDS} _; do :; done
kill -TERM -1 2>/dev/null
for _ in 1 2 3 4 5; do sleep 0.1 || exit 0; done
`

/** Ends the container before the command runs if the engine ignores the system call filter. Without a probe, the check passes. */
const CHECK_KERNEL = `
open=$(${INSIDE.kernelProbe} 2>/dev/null)
if [[ -n \${open//./} ]]; then
  echo 'The container engine does not enforce the list of system calls: run "mcp-orchestrator doctor".' >&2
  exit 1
fi
`

/**
 * Becomes the command. Its environment comes first on stdin (NAME=value, each ended by NUL, then an empty one), because the
 * engine may show whatever it is told in its events, its log or an inspect. Bash reads a pipe byte by byte, so the rest of the
 * input is left for the command.
 */
const LAUNCH = `while IFS= read -r -d '' pair && [[ -n $pair ]]; do export "$pair"; done; exec "$@"`

/** Skips the kernel check under gVisor, where the probe would test gVisor's kernel and not the host's. */
export function launchScript({ gvisor }: { gvisor: boolean }): string {
  return gvisor ? LAUNCH : `${CHECK_KERNEL}${LAUNCH}`
}

export function launchInput(env: Record<string, string>): Buffer {
  const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}\0`)
  return Buffer.from(`${pairs.join('')}\0`)
}
