/** `/healthz` tells whether the process is alive, `/readyz` whether it can serve. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AddressOf } from '../lib/web/client-address.ts'
import type { InstanceAccess } from '../sessions/access/instance-access.ts'
import type { Readiness } from './readiness.ts'
import { isFromThisMachine } from './this-machine.ts'

export interface HealthOptions {
  readiness: Readiness
  drain: { readonly isDraining: boolean }
  instance: Pick<InstanceAccess, 'check' | 'needsToken'>
  addressOf: AddressOf
}

export function registerHealth(server: FastifyInstance, options: HealthOptions): void {
  const { readiness, drain } = options
  server.addHook('onListen', async () => readiness.start(() => drain.isDraining))
  server.addHook('preClose', async () => readiness.stop())
  server.get('/healthz', async () => ({ ok: true }))
  server.get('/readyz', async (request, reply) => {
    // Don't check the parts any more: they may be closed already.
    if (drain.isDraining) return reply.code(503).send({ ok: false })
    const { ok, parts } = await readiness.look()
    return reply.code(ok ? 200 : 503).send(mayKnowWhy(request, options) ? { ok, ...parts } : { ok })
  })
}

/** Reasons contain folders, addresses and versions. Only token holders see them, or, without a token, clients on this machine. */
function mayKnowWhy({ headers, raw }: FastifyRequest, { instance, addressOf }: HealthOptions): boolean {
  try {
    instance.check({ headers, address: addressOf(raw) })
  } catch {
    return false
  }
  return instance.needsToken || isFromThisMachine({ headers, raw })
}
