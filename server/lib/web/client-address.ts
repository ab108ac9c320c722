import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

export type AddressOf = (
  request: Pick<IncomingMessage, 'headers'> & { socket: { remoteAddress?: string | undefined } }
) => string

/**
 * The address of a request, for limits. A header counts only if a trusted proxy (an address or a CIDR range) sends it, because
 * anyone can write it.
 */
export function clientAddresses(trusted: readonly string[]): AddressOf {
  const proxies = new BlockList()
  for (const range of trusted) {
    const [address = '', prefix] = range.split('/')
    if (prefix === undefined) proxies.addAddress(address, familyOf(address))
    else proxies.addSubnet(address, Number(prefix), familyOf(address))
  }
  const isTrusted = (address: string) => isIP(address) !== 0 && proxies.check(address, familyOf(address))
  return ({ headers, socket }) => {
    let address = plain(socket.remoteAddress ?? '')
    const said = String(headers['x-forwarded-for'] ?? '').split(',')
    while (isTrusted(address)) {
      const before = plain(said.pop()?.trim() ?? '')
      if (isIP(before) === 0) break
      address = before
    }
    return network(address)
  }
}

/** One client usually has a whole /64 network of IPv6, so it could use another address for every request. */
function network(address: string): string {
  if (isIP(address) !== 6 || address === '::1') return address
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean))
  const zeros = Array(Math.max(0, 8 - head.length - tail.length)).fill('0')
  const groups = [...head, ...zeros, ...tail].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${groups.join(':')}::/64`
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** An IPv4 address on a socket of both families is written as an IPv6 one. */
const plain = (address: string) => address.replace(/^::ffff:(?=\d+\.)/i, '')
