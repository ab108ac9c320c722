import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** Gauges that are read when someone scrapes; nothing is counted in between. */
export function createMetrics(
  gauges: Record<string, { help: string; read: () => Promise<number> | number }>
): () => Promise<string> {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const [name, { help, read }] of Object.entries(gauges)) {
    const gauge = new Gauge({
      name: `mcp_orchestrator_${name}`,
      help,
      registers: [registry],
      async collect() {
        // A store that is away must not hide the rest.
        gauge.set(
          await Promise.resolve()
            .then(read)
            .catch(() => Number.NaN)
        )
      }
    })
  }
  return () => registry.metrics()
}
