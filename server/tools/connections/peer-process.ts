import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { Socket } from 'node:net'

type Ends = Pick<Socket, 'localPort' | 'remotePort'>

/** The processes at the other end of a connection from this machine. None, where the system does not tell. */
export function processesBehind({ localPort, remotePort }: Ends): number[] {
  const inodes = new Set(
    ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) =>
      read(table)
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local, remote]) => portOf(local) === remotePort && portOf(remote) === localPort)
        .map((fields) => `socket:[${fields[9]}]`)
    )
  )
  if (inodes.size === 0) return []
  const pids = list('/proc').filter((name) => /^\d+$/.test(name))
  return pids
    .filter((pid) => list(`/proc/${pid}/fd`).some((fd) => inodes.has(link(`/proc/${pid}/fd/${fd}`))))
    .map(Number)
}

export interface KnownChildren {
  pids: number[]
  /** In the environment of every child, and of what it starts. */
  mark: string
  /** Covered for every child. */
  dataDir: string | undefined
}

/** By any of the signs that a child bears: it can lose some of them, but hardly all. */
export function isOfChildren(pid: number, { pids, mark, dataDir }: KnownChildren): boolean {
  const own = link('/proc/self/ns/user')
  const space = link(`/proc/${pid}/ns/user`)
  const session = Number(
    read(`/proc/${pid}/stat`)
      .replace(/^.*\) /s, '')
      .split(' ')[3]
  )
  return (
    pids.includes(pid) ||
    pids.includes(session) ||
    read(`/proc/${pid}/environ`).includes(mark) ||
    (space !== '' && space !== own && pids.some((child) => link(`/proc/${child}/ns/user`) === space)) ||
    (space !== own && dataDir !== undefined && covers(read(`/proc/${pid}/mountinfo`), dataDir))
  )
}

/** Mounts of a child go along into every namespace that it makes. */
function covers(mountinfo: string, folder: string): boolean {
  const escaped = folder.replace(/[\s\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return mountinfo.split('\n').some((line) => line.split(' ')[4] === escaped && / - tmpfs none /.test(line))
}

function portOf(address: string | undefined): number | undefined {
  const port = address?.split(':')[1]
  return port === undefined ? undefined : Number.parseInt(port, 16)
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
