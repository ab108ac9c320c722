/** `/healthz` tells whether the process is alive, `/readyz` whether it can serve. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isLoopbackHost } from '../lib/web/browser-proof.ts'
import type { AddressOf } from '../lib/web/client-address.ts'
import type { InstanceAccess } from '../sessions/access/instance-access.ts'
import type { Readiness } from './readiness.ts'

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
  return instance.needsToken || (isLoopbackHost(`${bracketed(raw.socket.remoteAddress)}`) && !isForwarded(headers))
}

/** Requests through a local proxy come from someone else. */
const isForwarded = (headers: FastifyRequest['headers']) =>
  Object.keys(headers).some((name) => /^(x-forwarded-|x-real-ip$|forwarded$|via$)/.test(name))

function bracketed(address = ''): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  return plain.includes(':') ? `[${plain}]` : plain
}
