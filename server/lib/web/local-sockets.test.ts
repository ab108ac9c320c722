import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { holdersOf, isOwnAddress, localRoutes, localSockets, runsAs } from './local-sockets.ts'

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

const onLinux = it.runIf(process.platform === 'linux')

async function openConnection() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect(port, '127.0.0.1')
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  await once(client, 'connect')
  const found = localSockets().find((socket) => socket.local === `127.0.0.1 ${client.localPort}`)
  if (!found) throw new Error('The connection is not in /proc/net/tcp.')
  return found
}

// Checked: if everything is read at once, no other work has its turn.
onLinux('lets other work go on while it looks through a process with many open files', async () => {
  const files = Array.from({ length: 3000 }, () => openSync('/dev/null', 'r'))
  onTestFinished(() => {
    for (const file of files) closeSync(file)
  })
  const { inode } = await openConnection()
  let turns = 0
  const count = () => {
    turns += 1
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  const holders = await holdersOf(`${inode}0`, (pid) => pid === process.pid)
  clearImmediate(next)
  expect(holders).toEqual([])
  expect(turns).toBeGreaterThan(10)
})

// Checked: a sandbox with many open files makes every look slow, if the files of all processes are read.
onLinux('reads only the files of processes that may have the socket', async () => {
  const { inode, uid } = await openConnection()
  const asked: number[] = []
  const mayHold = (pid: number) => {
    asked.push(pid)
    return false
  }
  expect(await holdersOf(inode, mayHold)).toEqual([])
  expect(asked).toContain(process.pid)
  expect(await holdersOf(inode, (pid) => runsAs(pid, uid))).toContain(process.pid)
  expect(runsAs(process.pid, uid + 1)).toBe(false)
})
