/** The services that this program uses or offers, which no sandbox may reach. */
import { networkInterfaces } from 'node:os'
import type { Settings } from '../../config/settings.ts'

export interface ServiceAddress {
  host: string
  port: number
}

const MAX_OWN_ADDRESSES = 4
const DEFAULT_PORTS: Record<string, number> = {
  'redis:': 6379,
  'rediss:': 6379,
  'tcp:': 2375,
  'http:': 80,
  'https:': 443
}

/** The host and port of a URL; nothing if it has none. */
function serviceAt(address: string | undefined): ServiceAddress[] {
  const { hostname = '', port, protocol = '' } = URL.parse(address ?? '') ?? {}
  if (hostname === '') return []
  return [{ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) || (DEFAULT_PORTS[protocol] ?? 0) }]
}

/** The services that the container of a server must not reach: the store, the bucket and the engine. The egress proxy finds our own port. */
export function servicesNearContainers(
  { REDIS_URL, S3_ENDPOINT }: Pick<Settings, 'REDIS_URL' | 'S3_ENDPOINT'>,
  engine: string | undefined
): ServiceAddress[] {
  return [REDIS_URL, S3_ENDPOINT, engine].flatMap(serviceAt)
}

/** The services that a pod must not reach: the store, the bucket, and our own port, which is in a pod too if we run in the cluster. */
export function servicesNearPods({ REDIS_URL, S3_ENDPOINT, HOST, PORT }: Settings): ServiceAddress[] {
  return [...[REDIS_URL, S3_ENDPOINT].flatMap(serviceAt), ...ownAddresses(HOST).map((host) => ({ host, port: PORT }))]
}

/** The addresses of this machine on which our port is open. */
function ownAddresses(host: string): string[] {
  const isForAll = host === '0.0.0.0' || host === '::'
  if (!isForAll) return [host]
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  // Addresses that begin with fe80 mean nothing on another machine.
  const known = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
  return known.map(({ address }) => address).slice(0, MAX_OWN_ADDRESSES)
}
