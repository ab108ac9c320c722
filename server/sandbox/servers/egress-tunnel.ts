import { Duplex, type Readable, type Writable } from 'node:stream'
import { EGRESS, INSIDE } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import { ByteTail } from '../../lib/streams/byte-tail.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import { parseHostPattern } from '../../lib/web/host-pattern.ts'
import type { OwnService } from '../egress/own-ports.ts'

const READY_MS = 20_000
const STDERR_BYTES = 2048

interface Relay {
  stdin: Writable
  stdout: Readable
  stderr: Readable
  ended: Promise<void>
  destroy(): void
}

export interface EgressTunnelOptions {
  /** Runs a command in the container. */
  run: (cmd: string[]) => Promise<Relay>
  hosts: string[]
  /** Never reached, whatever `hosts` says. */
  ownServices: OwnService[]
  onDenied(target: string, reason: string): void
}

/**
 * Opens a tunnel from a port on the container's loopback to a proxy in this process, through the streams of a command there; the
 * container itself has no network. Resolves when the port is open. The tunnel ends with the container.
 */
export async function openEgressTunnel({ run, hosts, ownServices, onDenied }: EgressTunnelOptions): Promise<void> {
  // Load these on demand: most servers have no network, and every loaded module makes the gateway start slower.
  const [{ serveTunnel }, { createEgressProxy }, { lookupAll }, { isOwnPort }] = await Promise.all([
    import('../egress/serve-tunnel.ts'),
    import('../egress/egress-proxy.ts'),
    import('../egress/egress-rules.ts'),
    import('../egress/own-ports.ts')
  ])
  const patterns = hosts.flatMap((host) => parseHostPattern(host) ?? [])
  const relay = await run([INSIDE.readableNode, INSIDE.server, EGRESS.command])
  const stderr = new ByteTail(STDERR_BYTES)
  relay.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  const proxy = await createEgressProxy({
    ...{ patterns, onDenied },
    isForbidden: (address, port) => isOwnPort({ address, port }, ownServices, lookupAll)
  })
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
  serveTunnel(Duplex.from({ readable: relay.stdout, writable: relay.stdin }), proxy, resolve)
  void relay.ended.then(() => {
    proxy.close()
    reject(new AppError('unavailable', 'egress_failed', `its network tunnel did not open: ${stderr.text().trim()}`))
  })
  try {
    await withDeadline({ what: 'the network tunnel to open', ms: READY_MS, code: 'egress_failed' }, () => ready)
  } catch (error) {
    relay.destroy()
    throw error
  }
}

/** Most programs find their proxy through these variables; Node's fetch does so only if it is told to. */
export function proxyVariables(hosts: string[]): Record<string, string> {
  if (hosts.length === 0) return {}
  const proxy = `http://127.0.0.1:${EGRESS.port}`
  // A server may talk to itself directly, unless localhost is on its list, which means this machine.
  const toHere = hosts.some((host) => /^(localhost|127\.|\[::1\])/i.test(host))
  const names = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ...(toHere ? {} : { NO_PROXY: 'localhost,127.0.0.1,::1' }) }
  const both = Object.entries(names).flatMap(([name, value]) => [
    [name, value],
    [name.toLowerCase(), value]
  ])
  return { ...Object.fromEntries(both), NODE_USE_ENV_PROXY: '1' }
}
