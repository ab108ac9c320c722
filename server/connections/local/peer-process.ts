/** Finds the process at the other end of a local connection, as far as the kernel tells. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { isIPv6, type Socket, SocketAddress } from 'node:net'
import { endianness, networkInterfaces } from 'node:os'

export type PeerSocket = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort' | 'destroyed'>

/**
 * `server`: an MCP server that runs here, or what it started. `unknown`: it can't be told from one. `another-user`: a program of a user
 * of this machine who is neither ours nor root. `other`: none of these, or this system does not tell (it is not Linux, or has no /proc).
 */
export type Sender = 'server' | 'unknown' | 'another-user' | 'other'

export interface KnownChildren {
  pids: number[]
  /** Set in the environment of every child and of what it starts. */
  mark: string | undefined
  /** Covered for every child. */
  dataDir: string | undefined
}

export const NO_CHILDREN: KnownChildren = { pids: [], mark: undefined, dataDir: undefined }

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6']

/** Every doubt makes the sender `unknown`: a server can hide its socket or itself, but it can't become one of our processes. */
export function senderOf(socket: PeerSocket, children: KnownChildren): Sender {
  if (process.platform !== 'linux' || !TABLES.some((table) => existsSync(table))) return 'other'
  if (socket.destroyed || socket.remoteAddress === undefined) return 'unknown'
  if (!isOfThisMachine(plain(socket.remoteAddress))) return 'other'
  const end = farEnd(socket)
  // No process has the socket: it was closed.
  if (!end) return 'unknown'
  const pids = holdersOf(end.inode)
  if (pids.some((pid) => isOfChildren(pid, children))) return 'server'
  if (isOfAnotherUser(end.uid)) return 'another-user'
  if (pids.length === 0) return isHiddenFromUs(end.uid) ? 'other' : 'unknown'
  const own = link('/proc/self/ns/user')
  return own !== '' && pids.every((pid) => link(`/proc/${pid}/ns/user`) === own) ? 'other' : 'unknown'
}

/** In a user namespace, users that it does not contain all have the same number, and root may be one of them: nothing can be told then. */
function isOfAnotherUser(uid: number): boolean {
  const isSomebody = uid !== Number(read('/proc/sys/kernel/overflowuid')) || hasAllUsers()
  return isSomebody && uid !== 0 && uid !== ownUser()
}

/** The files of other users are hidden from us. Children have our own user id and no other, except those of root. */
function isHiddenFromUs(uid: number): boolean {
  return ownUser() !== 0 && uid !== ownUser()
}

function ownUser(): number {
  return process.geteuid?.() ?? 0
}

function hasAllUsers(): boolean {
  return /^\s*0\s+0\s+4294967295\s*$/.test(read('/proc/self/uid_map'))
}

function isOfThisMachine(address: string): boolean {
  if (address === '::1' || address.startsWith('127.')) return true
  return Object.values(networkInterfaces()).some((list) => list?.some((one) => one.address === address.split('%')[0]))
}

/** Compares both addresses and both ports: a server may use the port of a browser's connection on another loopback address. */
function farEnd(socket: PeerSocket): { inode: string; uid: number } | undefined {
  const near = `${plain(socket.localAddress ?? '')} ${socket.localPort}`
  const far = `${plain(socket.remoteAddress ?? '')} ${socket.remotePort}`
  for (const line of TABLES.flatMap((table) => read(table).split('\n'))) {
    const [, local, remote, , , , , uid, , inode] = line.trim().split(/\s+/)
    if (inode === undefined || inode === '0') continue
    if (endOf(local) === far && endOf(remote) === near) return { inode, uid: Number(uid) }
  }
  return undefined
}

/** The kernel writes addresses as hexadecimal words, each in the byte order of the machine. */
function endOf(written: string | undefined): string | undefined {
  const [, hex, port] = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/i.exec(written ?? '') ?? []
  if (hex === undefined || port === undefined) return undefined
  const bytes = Buffer.from(hex, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  const address = bytes.length === 4 ? bytes.join('.') : (bytes.toString('hex').match(/.{4}/g) ?? []).join(':')
  return `${plain(address)} ${Number.parseInt(port, 16)}`
}

/** Normalizes an address. A dual-stack socket shows an IPv4 address as an IPv6 one. */
function plain(address: string): string {
  const [bare = ''] = address.split('%')
  if (!isIPv6(bare)) return bare
  return new SocketAddress({ address: bare, family: 'ipv6' }).address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/** The processes that have the socket open, as far as we may see. */
export function holdersOf(inode: string): number[] {
  const name = `socket:[${inode}]`
  const pids = list('/proc').filter((entry) => /^\d+$/.test(entry))
  return pids.filter((pid) => list(`/proc/${pid}/fd`).some((fd) => link(`/proc/${pid}/fd/${fd}`) === name)).map(Number)
}

/** Checks every mark of a child, because it can lose some of them. */
function isOfChildren(pid: number, { pids, mark, dataDir }: KnownChildren): boolean {
  const isApart = (space: string) => link(`/proc/${pid}/ns/${space}`) !== link(`/proc/self/ns/${space}`)
  const shares = (space: string) => {
    const name = link(`/proc/${pid}/ns/${space}`)
    return name !== '' && isApart(space) && pids.some((child) => link(`/proc/${child}/ns/${space}`) === name)
  }
  const { group, session } = statOf(pid)
  return (
    [group, session, ...ancestorsOf(pid)].some((one) => pids.includes(one)) ||
    (mark !== undefined && read(`/proc/${pid}/environ`).includes(mark)) ||
    shares('user') ||
    shares('mnt') ||
    (isApart('user') && dataDir !== undefined && covers(read(`/proc/${pid}/mountinfo`), dataDir))
  )
}

/** Includes the process itself. */
function ancestorsOf(pid: number): number[] {
  const line: number[] = []
  for (let at = pid; at > 1 && !line.includes(at); at = statOf(at).parent) line.push(at)
  return line
}

function statOf(pid: number): { parent: number; group: number; session: number } {
  const [, parent, group, session] = read(`/proc/${pid}/stat`)
    .replace(/^.*\) /s, '')
    .split(' ')
  return { parent: Number(parent ?? 0), group: Number(group ?? 0), session: Number(session ?? 0) }
}

/** A child's mounts are inherited by every namespace that it creates. */
function covers(mountinfo: string, folder: string): boolean {
  const escaped = folder.replace(/[\s\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return mountinfo.split('\n').some((line) => line.split(' ')[4] === escaped && / - tmpfs none /.test(line))
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
