/** Reads from /proc which sockets this machine has and which processes have them open. Finds nothing where there is no /proc. */
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net'
import { endianness, networkInterfaces } from 'node:os'
import { setImmediate as othersTurn } from 'node:timers/promises'

export interface LocalSocket {
  /** Address and port with a space between. */
  local: string
  remote: string
  port: number
  isListening: boolean
  uid: number
  inode: string
}

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6']
const LISTENING = '0A'

export function canListSockets(): boolean {
  return TABLES.some((table) => existsSync(table))
}

export function localSockets(): LocalSocket[] {
  return TABLES.flatMap((table) => textOf(table).split('\n')).flatMap((line) => {
    const [, near, far, state, , , , uid, , inode] = line.trim().split(/\s+/)
    const [local, remote] = [endOf(near), endOf(far)]
    if (!local || !remote || inode === undefined) return []
    return [
      { local, remote, port: Number(local.split(' ')[1]), isListening: state === LISTENING, uid: Number(uid), inode }
    ]
  })
}

/** The kernel writes addresses as hexadecimal words, each in the byte order of the machine. */
function endOf(written: string | undefined): string | undefined {
  const [, hex, port] = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/i.exec(written ?? '') ?? []
  if (hex === undefined || port === undefined) return undefined
  const bytes = Buffer.from(hex, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  const address = bytes.length === 4 ? bytes.join('.') : (bytes.toString('hex').match(/.{4}/g) ?? []).join(':')
  return `${plainAddress(address)} ${Number.parseInt(port, 16)}`
}

/** Normalizes an address. A dual-stack socket shows an IPv4 address as an IPv6 one. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.split('%')
  if (!isIPv6(bare)) return bare
  return new SocketAddress({ address: bare, family: 'ipv6' }).address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/** Whether a connection to the address stays on this machine. A connection to "any address" does too. */
export function isOwnAddress(address: string): boolean {
  const plain = plainAddress(address)
  if (plain === '::1' || plain === '::' || /^(127|0)\./.test(plain)) return true
  if (Object.values(networkInterfaces()).some((list) => list?.some((one) => plainAddress(one.address) === plain)))
    return true
  const routes = localRoutes(textOf('/proc/net/fib_trie'), textOf('/proc/net/ipv6_route'))
  return isIP(plain) !== 0 && routes.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
}

const RTF_LOCAL = 0x80000000

/**
 * Whole networks can be routed to this machine without an address on any interface (`ip route add local 203.0.113.0/24 dev lo`). Takes
 * the kernel's tables of routes for IPv4 and IPv6.
 */
export function localRoutes(fibTrie: string, ipv6Routes: string): BlockList {
  const routes = new BlockList()
  let address = ''
  for (const line of fibTrie.split('\n')) {
    address = /\|-- ([\d.]+)$/.exec(line)?.[1] ?? address
    const prefix = /\/(\d+) \w+ LOCAL$/.exec(line)?.[1]
    if (prefix !== undefined) routes.addSubnet(address, Number(prefix), 'ipv4')
  }
  for (const line of ipv6Routes.split('\n')) {
    const [to = '', prefix = '', , , , , , , flags = ''] = line.split(/\s+/)
    if (!/^[0-9a-f]{32}$/.test(to) || (Number.parseInt(flags, 16) & RTF_LOCAL) === 0) continue
    routes.addSubnet(to.match(/.{4}/g)?.join(':') ?? '', Number.parseInt(prefix, 16), 'ipv6')
  }
  return routes
}

/** Reads of /proc before other work has its turn. They take about a millisecond. */
const READS_AT_ONCE = 200

/**
 * The processes that have the socket open, as far as we may see, of those that `mayHold` names. There can be many processes with many
 * open files, also those of a sandbox: so name as few as possible. Other work goes on meanwhile.
 */
export async function holdersOf(inode: string, mayHold: (pid: number) => boolean): Promise<number[]> {
  const name = `socket:[${inode}]`
  const holders: number[] = []
  let reads = 0
  const pause = async () => {
    if (++reads % READS_AT_ONCE === 0) await othersTurn()
  }
  for (const entry of await namesIn('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid)) continue
    await pause()
    if (!mayHold(pid)) continue
    for (const fd of await namesIn(`/proc/${pid}/fd`)) {
      await pause()
      if (targetOf(`/proc/${pid}/fd/${fd}`) !== name) continue
      holders.push(pid)
      break
    }
  }
  return holders
}

/** Whether the process runs as this user, with one of its user ids. */
export function runsAs(pid: number, uid: number): boolean {
  const ids = /^Uid:\s+(.*)$/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? ''
  return ids.split(/\s+/).includes(String(uid))
}

/** '' if it can't be read. */
export function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => [])
}

/** Where a link leads; '' if it can't be read. */
export function targetOf(link: string): string {
  try {
    return readlinkSync(link)
  } catch {
    return ''
  }
}
