/**
 * Shuts down the HTTP server gracefully. From `begin` on, nothing new is accepted, every answer closes its connection,
 * and `/readyz` answers 503, so that a load balancer chooses another instance. After the grace time, open requests are cut off.
 */
import type { FastifyInstance } from 'fastify'
import { shuttingDown } from '../lib/waiting/shutting-down.ts'

export interface Drain {
  readonly isDraining: boolean
  begin(): void
  /** Resolves when no request is open, when the grace time is over, or when `hurry` fires. Then closes all connections. */
  finish(graceMs: number, hurry?: AbortSignal): Promise<void>
}

const PROBES = /^\/(healthz|readyz)(\?|$)/

/** Register it before everything else that may answer a request. */
export function registerDrain(server: FastifyInstance): Drain {
  let isDraining = false
  let open = 0
  let onQuiet = () => {}
  server.addHook('onRequest', async (request, reply) => {
    open += 1
    reply.raw.once('close', () => {
      open -= 1
      if (open === 0) onQuiet()
    })
    if (isDraining && !PROBES.test(request.url)) throw shuttingDown()
  })
  server.addHook('onSend', async (_request, reply) => {
    if (isDraining) reply.header('connection', 'close')
  })
  return {
    get isDraining() {
      return isDraining
    },
    begin() {
      isDraining = true
      server.server.closeIdleConnections()
    },
    async finish(graceMs, hurry) {
      const { promise: over, resolve } = Promise.withResolvers<void>()
      onQuiet = resolve
      const timer = setTimeout(resolve, graceMs)
      hurry?.addEventListener('abort', () => resolve(), { once: true })
      if (open > 0 && !hurry?.aborted) await over
      clearTimeout(timer)
      server.server.closeAllConnections()
    }
  }
}
