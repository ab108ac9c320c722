import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { ToolObserver } from '../calls/tool-observer.ts'
import { packageVersion } from '../lib/files/package-version.ts'
import { buildInfo, type CoreObserver, coreObserver, meters } from './core-metrics.ts'

export interface ServerFigures {
  server: string
  breaker: string
  /** Open connections. */
  running: number
  /** Running calls. */
  busy: number
}

export interface Metrics {
  text(): Promise<string>
  /** Counts what tools and servers do. */
  observer: Required<ToolObserver>
  /** Counts what happens below the faces. */
  core: CoreObserver
  /** Values that are read on every scrape. */
  watch(gauges: Record<string, { help: string; read: () => Promise<number> | number }>): void
  watchServers(read: () => ServerFigures[]): void
}

const PREFIX = 'mcp_orchestrator_'
/** Maximum number of server labels, because labels are kept forever. Further servers share one label. */
const MAX_SERVERS = 200
const BREAKERS = ['closed', 'open', 'half-open']
const CALL_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300]
const START_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  buildInfo(registry, PREFIX, packageVersion())
  const watch: Metrics['watch'] = (gauges) => {
    for (const [name, { help, read }] of Object.entries(gauges)) watchOne(registry, name, help, read)
  }
  const known = new Set<string>()
  const labelOf = (server: string) => {
    if (known.size < MAX_SERVERS) known.add(server)
    return known.has(server) ? server : 'other'
  }
  return {
    text: () => registry.metrics(),
    observer: toolObserver(registry, labelOf),
    core: coreObserver(registry, PREFIX),
    watch,
    watchServers: (read) => watchServers(registry, read, labelOf)
  }
}

function watchOne(registry: Registry, name: string, help: string, read: () => Promise<number> | number): void {
  const gauge = new Gauge({
    name: PREFIX + name,
    help,
    registers: [registry],
    async collect() {
      // If the store is down, still report the other metrics.
      const value = (async () => read())()
      gauge.set(await value.catch(() => Number.NaN))
    }
  })
}

function toolObserver(registry: Registry, labelOf: (server: string) => string): Required<ToolObserver> {
  const { count, time } = meters(registry, PREFIX)
  const calls = count('calls_total', 'Calls of tools.', 'server', 'door', 'outcome')
  const retries = count('call_retries_total', 'Further attempts of calls.', 'server')
  const called = 'From sending a call to its result, with the start of the server and without waiting for approval.'
  const callSeconds = time('call_seconds', called, CALL_SECONDS, 'server')
  const routed = 'Routed requests; abstained: no tool was sure enough.'
  const routes = count('routing_decisions_total', routed, 'by', 'outcome')
  const starts = count('server_starts_total', 'Servers that were started.', 'server')
  const restarts = count('server_restarts_total', 'Starts of a server that had run before.', 'server')
  const failures = count('server_start_failures_total', 'Starts that failed.', 'server')
  const startSeconds = time(
    'server_start_seconds',
    'From the start of a server to its list of tools.',
    START_SECONDS,
    'server'
  )
  const denials = count('egress_denials_total', 'Refused connections of sandboxed servers.', 'server')
  return {
    called({ server, door, outcome, ms, attempts }) {
      const label = labelOf(server)
      calls.inc({ server: label, door, outcome })
      if (ms !== undefined) callSeconds.observe({ server: label }, ms / 1000)
      if (attempts > 1) retries.inc({ server: label }, attempts - 1)
    },
    routed: (by, outcome) => routes.inc({ by, outcome }),
    started(server, ms, again) {
      starts.inc({ server: labelOf(server) })
      startSeconds.observe({ server: labelOf(server) }, ms / 1000)
      if (again) restarts.inc({ server: labelOf(server) })
    },
    startFailed: (server) => failures.inc({ server: labelOf(server) }),
    denied: (server) => denials.inc({ server: labelOf(server) })
  }
}

function watchServers(registry: Registry, read: () => ServerFigures[], labelOf: (server: string) => string): void {
  const gauge = (name: string, help: string, add: (gauge: Gauge, server: string, figures: ServerFigures) => void) => {
    const labelNames = name === 'server_breaker' ? ['server', 'state'] : ['server']
    const own: Gauge = new Gauge({
      name: PREFIX + name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        own.reset()
        for (const figures of read()) add(own, labelOf(figures.server), figures)
      }
    })
  }
  gauge('server_connections', 'Open connections to a server, instances and owners together.', (own, server, figures) =>
    own.inc({ server }, figures.running)
  )
  gauge('server_calls_running', 'Calls under way.', (own, server, { busy }) => own.inc({ server }, busy))
  gauge('server_breaker', 'State of the circuit breaker for server starts.', (own, server, { breaker }) => {
    for (const state of BREAKERS) own.inc({ server, state }, breaker === state ? 1 : 0)
  })
}
