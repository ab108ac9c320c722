import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

export type AddressOf = (
  request: Pick<IncomingMessage, 'headers'> & { socket: { remoteAddress?: string | undefined } }
) => string

/**
 * Whose request it is, for limits. What a proxy says of it counts only as far as the proxies are named as trusted (addresses or
 * CIDR ranges): anyone can write the header.
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
    return address
  }
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** An IPv4 address on a socket of both families is written as an IPv6 one. */
const plain = (address: string) => address.replace(/^::ffff:(?=\d+\.)/i, '')
