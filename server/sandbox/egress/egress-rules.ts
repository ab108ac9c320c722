import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import { type HostPattern, matchesHost, normalHost } from '../../lib/web/host-pattern.ts'
import { isOwnAddress } from '../../lib/web/local-sockets.ts'
import { isLoopback, isPublicAddress } from './public-address.ts'

export interface Target {
  host: string
  port: number
}

export type Decision = { addresses: string[] } | { denied: string }
export type Lookup = (host: string) => Promise<string[]>

const LOOKUP_MS = 5000
const MAX_ADDRESSES = 8

export const lookupAll: Lookup = async (host) => (await systemLookup(host, { all: true })).map(({ address }) => address)

/** Parses `host:port`, the form that CONNECT uses. */
export function readTarget(authority: string, defaultPort?: number): Target | undefined {
  const [, name = '', digits] = /^(\[[0-9a-f:.]+\]|[^\s:/@[\]]+)(?::(\d{1,5}))?$/i.exec(authority) ?? []
  const host = normalHost(name)
  const port = digits === undefined ? defaultPort : Number(digits)
  return host === '' || port === undefined || port < 1 || port > 65_535 ? undefined : { host, port }
}

export interface TargetChecks {
  lookup?: Lookup | undefined
  /** Whether an address is one of this machine. */
  isOwn?: ((address: string) => boolean) | undefined
  /** Whether nobody may connect to this port, whatever the list says. */
  isForbidden?: ((address: string, port: number) => Promise<boolean>) | undefined
}

/**
 * Decides which addresses may be dialled for a target. The name must be on the list, and so must an address that is not public or
 * belongs to this machine. Otherwise the owner of an allowed name's DNS could point it here. The caller dials the address
 * and never the name.
 */
export async function checkTarget(
  patterns: HostPattern[],
  { host, port }: Target,
  { lookup = lookupAll, isOwn = isOwnAddress, isForbidden = async () => false }: TargetChecks = {}
): Promise<Decision> {
  const named = (name: string) => patterns.some((pattern) => matchesHost(pattern, name, port))
  const namedItself = (name: string) => patterns.some((one) => !one.wildcard && matchesHost(one, name, port))
  if (!named(host)) return { denied: 'it is not on the list' }
  const found = isIP(host)
    ? [host]
    : await withDeadline({ what: `the address of ${host}`, ms: LOOKUP_MS }, () => lookup(host))
  const [first = 'no address'] = found
  const addresses = found.slice(0, MAX_ADDRESSES).filter((address) => {
    const ownMachine = host === 'localhost' && namedItself(host) && isLoopback(address)
    return (isPublicAddress(address) && !isOwn(address)) || namedItself(address) || ownMachine
  })
  if (addresses.length === 0) {
    const kind = isPublicAddress(first) ? 'an address of this machine' : 'not public'
    return { denied: `it leads to ${first}, which is ${kind} and not on the list itself` }
  }
  for (const address of addresses) {
    if (await isForbidden(address, port))
      return { denied: 'that port belongs to MCP Orchestrator, its store or its engine' }
  }
  return { addresses }
}
