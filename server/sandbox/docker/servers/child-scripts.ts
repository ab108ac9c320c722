import { INSIDE } from '../../../../workspace-server/protocol.ts'

/** How often we send a heartbeat to the supervisor, and how long it waits for one. */
export const HEARTBEAT_MS = 15_000
const SILENCE_SECONDS = 90
/** As the first process, bash collects processes that have ended only between two reads with a time limit. */
const COLLECT_SECONDS = 2

/**
 * The first process of a child's container. It lives as long as its input, which ends with the gateway, however the gateway
 * ended. Silence counts as an end too, because a broken network may never be reported. Then every process gets a SIGTERM and a
 * moment to finish. When this process exits, the kernel ends the rest and the engine removes the container. It forks nothing
 * while it waits, so a child that has used up all processes can't block it.
 */
const SUPERVISE = `
trap '' TERM HUP INT
quiet=0
while ((quiet < ${SILENCE_SECONDS})); do
  read -r -t ${COLLECT_SECONDS} _
  case $? in
    0) quiet=0 ;;
    1) break ;;
    *) ((quiet += ${COLLECT_SECONDS})) ;;
  esac
done
kill -TERM -1 2>/dev/null
for _ in 1 2 3 4 5; do sleep 0.1 || exit 0; done
`

/** Runs it from a bash that nobody can read, so that no command can keep its input open. gVisor can't run such a file. */
export const SUPERVISOR = [
  '/bin/bash',
  '-c',
  `shopt -s execfail; exec ${INSIDE.bash} -c "$0" 2>/dev/null; eval "$0"`,
  SUPERVISE
]
