import { BlockList, isIP } from 'node:net'

/** Addresses of this machine, of its network, or of nothing at all (IANA's special-purpose registries). */
const PRIVATE_4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`
/** Inside 2000::/3; nothing outside of it is public. Tunnels (Teredo, 6to4) could carry a private IPv4 address. */
const PRIVATE_6 = '2001::/23 2001:db8::/32 2002::/16 3fff::/20'

const four = blockList(PRIVATE_4, 'ipv4')
const six = blockList(PRIVATE_6, 'ipv6')
const global6 = blockList('2000::/3', 'ipv6')

export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !four.check(address, 'ipv4')
  return isIP(address) === 6 && global6.check(address, 'ipv6') && !six.check(address, 'ipv6')
}

export function isLoopback(address: string): boolean {
  return address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address)
}

function blockList(ranges: string, family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const range of ranges.split(/\s+/)) {
    const [net = '', prefix] = range.split('/')
    list.addSubnet(net, Number(prefix), family)
  }
  return list
}
