/** How the command of a child server is started in a container, whichever engine runs it. */
import { INSIDE } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { ChildContainerRequest } from '../child-port.ts'

const NOT_FOUND = 127
const KILLED = 137

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

/** Without `probes`, the parts of the kernel are not tried first. */
export function launchScript({ probes }: { probes: boolean }): string {
  return probes ? `${CHECK_KERNEL}${LAUNCH}` : LAUNCH
}

export function launchInput(env: Record<string, string>): Buffer {
  const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}\0`)
  return Buffer.from(`${pairs.join('')}\0`)
}

/** Bash can set no other names. */
export function checkNames({ server, env }: Pick<ChildContainerRequest, 'server' | 'env'>): void {
  const bad = Object.keys(env).find((name) => !/^[A-Za-z_]\w*$/.test(name))
  if (bad === undefined) return
  const message = `The server "${server}" can't be started: "${bad.slice(0, 100)}" is not a valid name for a variable in a sandbox.`
  throw new AppError('invalid', 'server_not_startable', message, { details: { permanent: true } })
}

export function whyEnded(code: number | null, command: string, memoryMb: number): string {
  if (code === null) return 'its container has ended'
  const ended = `it ended with exit code ${code}`
  if (code === NOT_FOUND) return `${ended}; check that its image has a command "${command}"`
  if (code === KILLED) return `${ended}: it was killed, perhaps for using more than its ${memoryMb} MB of memory`
  return ended
}
