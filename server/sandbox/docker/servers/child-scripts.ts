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
