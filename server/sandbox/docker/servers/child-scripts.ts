import { INSIDE } from '../../../../workspace-server/protocol.ts'

/** How often the supervisor has to hear from us, and how long it waits for that. */
export const HEARTBEAT_MS = 15_000
const SILENCE_SECONDS = 90

/**
 * The first process of a child's container. It lives as long as its input: that ends with the gateway, however the gateway
 * ended, and silence counts as an end, because a broken network may never tell. Then everything gets a SIGTERM and a moment;
 * when this process leaves, the kernel ends the rest and the engine removes the container. It forks nothing while it waits, so
 * that a child which has used up all processes can't keep it from doing its work.
 */
export const SUPERVISE = `
trap '' TERM HUP INT
while read -r -t ${SILENCE_SECONDS} _; do :; done
kill -TERM -1 2>/dev/null
for _ in 1 2 3 4 5; do sleep 0.1 || exit 0; done
`

/** Ends a container whose engine ignores the list of system calls, before the command runs. Where there is no probe, it passes. */
const CHECK_KERNEL = `
open=$(${INSIDE.kernelProbe} 2>/dev/null)
if [[ -n \${open//./} ]]; then
  echo 'The container engine does not enforce the list of system calls: run "mcp-orchestrator doctor".' >&2
  exit 1
fi
`

/**
 * Becomes the command. Its environment comes first on stdin (NAME=value, each ended by NUL, then one empty), because whatever the
 * engine is told it may show: in its events, to who inspects, in its log. Bash reads a pipe byte by byte, so what follows is left
 * for the command.
 */
const LAUNCH = `while IFS= read -r -d '' pair && [[ -n $pair ]]; do export "$pair"; done; exec "$@"`

/** Under gVisor its own kernel answers the probe, and not the host's. */
export function launchScript({ gvisor }: { gvisor: boolean }): string {
  return gvisor ? LAUNCH : `${CHECK_KERNEL}${LAUNCH}`
}

export function launchInput(env: Record<string, string>): Buffer {
  const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}\0`)
  return Buffer.from(`${pairs.join('')}\0`)
}
