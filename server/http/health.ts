/** Whether the process lives (`/healthz`) and whether it can serve (`/readyz`), with a reason for each part that can't. */
import type { FastifyInstance } from 'fastify'

export type HealthCheck = () => Promise<{ ok: boolean; detail: string }>

export function registerHealth(
  server: FastifyInstance,
  checks: Record<string, HealthCheck>,
  drain: { readonly isDraining: boolean } = { isDraining: false }
): void {
  server.get('/healthz', async () => ({ ok: true }))
  server.get('/readyz', async (_request, reply) => {
    // The parts are not asked any more: they may be closed already.
    if (drain.isDraining) return reply.code(503).send({ ok: false })
    const entries = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => [name, await check()] as const)
    )
    const ok = entries.every(([, result]) => result.ok)
    return reply.code(ok ? 200 : 503).send({ ok, ...Object.fromEntries(entries) })
  })
}
