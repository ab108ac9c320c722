import type { BreakerState } from './breaker.ts'

export interface ServerState {
  state: 'stopped' | 'starting' | 'running'
  breaker: BreakerState
  pid?: number
  busy: number
  starts: number
  /** When the current process, or the connection to a remote server, started. */
  startedAt?: number
  lastError?: { at: number; message: string }
}

/** The combined state: running if any instance is, resting only if all are. */
export interface PoolState extends ServerState {
  instances: ServerState[]
}

/** For metrics: servers that have not been used yet are missing. */
export function serverFigures(
  servers: Iterable<string>,
  connections: { state(server: string): PoolState | undefined }
) {
  return [...servers].flatMap((server) => {
    const state = connections.state(server)
    if (!state) return []
    const running = state.instances.filter((instance) => instance.state === 'running').length
    return [{ server, breaker: state.breaker, busy: state.busy, running }]
  })
}

export function combine(instances: ServerState[]): PoolState | undefined {
  const running = instances.find(({ state }) => state === 'running')
  const best = running ?? instances.find(({ state }) => state === 'starting') ?? instances.at(0)
  if (best === undefined) return undefined
  const errors = instances.flatMap(({ lastError }) => lastError ?? []).sort((a, b) => b.at - a.at)
  const usable = instances.find(({ breaker }) => breaker === 'closed') ?? best
  return {
    ...best,
    breaker: usable.breaker,
    busy: instances.reduce((sum, { busy }) => sum + busy, 0),
    starts: instances.reduce((sum, { starts }) => sum + starts, 0),
    ...(errors[0] ? { lastError: errors[0] } : {}),
    instances
  }
}
