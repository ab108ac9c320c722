/** Finds the process at the other end of a local connection, as far as the kernel tells. */
import type { Socket } from 'node:net'
import {
  canListSockets,
  holdersOf,
  isOwnAddress,
  type LocalSocket,
  localSockets,
  plainAddress,
  runsAs,
  targetOf,
  textOf
} from '../../lib/web/local-sockets.ts'
import { wasDialled } from '../../sandbox/egress/dialled.ts'

export type PeerSocket = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort' | 'destroyed'>

/**
 * `server`: an MCP server that runs here, what it started, or one in a container through its egress proxy. `unknown`: it can't be told
 * from one. `another-user`: a program of a user of this machine who is neither ours nor root. `other`: none of these, or this system does
 * not tell (it is not Linux, or has no /proc).
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

/** Every doubt makes the sender `unknown`: a server can hide its socket or itself, but it can't become one of our processes. */
export async function senderOf(socket: PeerSocket, children: KnownChildren): Promise<Sender> {
  if (wasDialled(socket.remoteAddress, socket.remotePort)) return 'server'
  if (process.platform !== 'linux' || !canListSockets()) return 'other'
  if (socket.destroyed || socket.remoteAddress === undefined) return 'unknown'
  if (!isOwnAddress(socket.remoteAddress)) return 'other'
  const end = farEnd(socket)
  // No process has the socket: it was closed.
  if (!end) return 'unknown'
  // Others can have it only if it was handed to them; then nobody is found, which is a doubt too.
  const pids = await holdersOf(end.inode, (pid) => runsAs(pid, end.uid))
  if (pids.some((pid) => isOfChildren(pid, children))) return 'server'
  if (isOfAnotherUser(end.uid)) return 'another-user'
  if (pids.length === 0) return isHiddenFromUs(end.uid) ? 'other' : 'unknown'
  const own = targetOf('/proc/self/ns/user')
  return own !== '' && pids.every((pid) => targetOf(`/proc/${pid}/ns/user`) === own) ? 'other' : 'unknown'
}

/** In a user namespace, users that it does not contain all have the same number, and root may be one of them: nothing can be told then. */
function isOfAnotherUser(uid: number): boolean {
  const isSomebody = uid !== Number(textOf('/proc/sys/kernel/overflowuid')) || hasAllUsers()
  return isSomebody && uid !== 0 && uid !== ownUser()
}

/** The files of other users are hidden from us. That does not matter: unless we are root, our children have our own user id. */
function isHiddenFromUs(uid: number): boolean {
  return ownUser() !== 0 && uid !== ownUser()
}

function ownUser(): number {
  return process.geteuid?.() ?? 0
}

function hasAllUsers(): boolean {
  return /^\s*0\s+0\s+4294967295\s*$/.test(textOf('/proc/self/uid_map'))
}

/** Compares both addresses and both ports: a server may use the port of a browser's connection on another loopback address. */
function farEnd(socket: PeerSocket): LocalSocket | undefined {
  const near = `${plainAddress(socket.localAddress ?? '')} ${socket.localPort}`
  const far = `${plainAddress(socket.remoteAddress ?? '')} ${socket.remotePort}`
  return localSockets().find(({ local, remote, inode }) => inode !== '0' && local === far && remote === near)
}

/** Checks every mark of a child, because it can lose some of them. */
function isOfChildren(pid: number, { pids, mark, dataDir }: KnownChildren): boolean {
  const isApart = (space: string) => targetOf(`/proc/${pid}/ns/${space}`) !== targetOf(`/proc/self/ns/${space}`)
  const shares = (space: string) => {
    const name = targetOf(`/proc/${pid}/ns/${space}`)
    return name !== '' && isApart(space) && pids.some((child) => targetOf(`/proc/${child}/ns/${space}`) === name)
  }
  const { group, session } = statOf(pid)
  return (
    [group, session, ...ancestorsOf(pid)].some((one) => pids.includes(one)) ||
    (mark !== undefined && textOf(`/proc/${pid}/environ`).includes(mark)) ||
    shares('user') ||
    shares('mnt') ||
    (isApart('user') && dataDir !== undefined && covers(textOf(`/proc/${pid}/mountinfo`), dataDir))
  )
}

/** Includes the process itself. */
function ancestorsOf(pid: number): number[] {
  const line: number[] = []
  for (let at = pid; at > 1 && !line.includes(at); at = statOf(at).parent) line.push(at)
  return line
}

function statOf(pid: number): { parent: number; group: number; session: number } {
  const [, parent, group, session] = textOf(`/proc/${pid}/stat`)
    .replace(/^.*\) /s, '')
    .split(' ')
  return { parent: Number(parent ?? 0), group: Number(group ?? 0), session: Number(session ?? 0) }
}

/** A child's mounts are inherited by every namespace that it creates. */
function covers(mountinfo: string, folder: string): boolean {
  const escaped = folder.replace(/[\s\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return mountinfo.split('\n').some((line) => line.split(' ')[4] === escaped && / - tmpfs none /.test(line))
}
