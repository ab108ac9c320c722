import { expect, it } from 'vitest'
import { isOwnAddress, localRoutes } from './local-sockets.ts'

/** From a kernel to which \`ip route add local\` routed two networks. */
const FIB_TRIE = `Local:
  +-- 0.0.0.0/0 2 0 2
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.0
              /8 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     |-- 198.51.100.0
        /24 link UNICAST
     |-- 203.0.113.0
        /24 host LOCAL
`
const ZERO = '0'.repeat(32)
const rest = (flags: string) => `${ZERO} 00 ${ZERO} 00000400 00000001 00000000 ${flags}       lo`
const IPV6_ROUTES = `20010db8000000000000000000000000 20 ${rest('80000001')}
20010db9000000000000000000000000 20 ${rest('00000001')}
`

// Checked: if only the addresses of the interfaces count, a server may reach this machine by the others.
it('a network that is routed to this machine is its own', () => {
  const routes = localRoutes(FIB_TRIE, IPV6_ROUTES)
  const isOwn = (address: string) => routes.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
  expect(['203.0.113.9', '127.9.9.9', '2001:db8:1::1'].filter(isOwn)).toHaveLength(3)
  expect(['203.0.114.9', '198.51.100.1', '127.255.0.0', '2001:db9::1'].filter(isOwn)).toEqual(['127.255.0.0'])
  expect(['127.0.0.1', '::', '192.0.2.77', '2001:db9::1', 'a name'].filter(isOwnAddress)).toEqual(['127.0.0.1', '::'])
})
