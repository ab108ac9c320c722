import type { FastifyRequest } from 'fastify'
import { isLoopbackHost } from '../lib/web/browser-proof.ts'

/** Whether the sender is on this machine. A local proxy may pass on requests from anywhere, so those don't count. */
export function isFromThisMachine({ headers, raw }: Pick<FastifyRequest, 'headers' | 'raw'>): boolean {
  const isForwarded = Object.keys(headers).some((name) => /^(x-forwarded-|x-real-ip$|forwarded$|via$)/.test(name))
  return isLoopbackHost(bracketed(raw.socket.remoteAddress)) && !isForwarded
}

function bracketed(address = ''): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  return plain.includes(':') ? `[${plain}]` : plain
}
