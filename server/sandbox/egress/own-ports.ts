/**
 * The ports that a sandboxed server never reaches, whatever its entry allows: what listens there trusts this program, and the egress
 * proxy connects in its name.
 */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { holdersOf, isOwnAddress, localSockets, plainAddress, targetOf, textOf } from '../../lib/web/local-sockets.ts'

/** A service that this program uses with its own rights: the store, or the container engine. */
export interface OwnService {
  host: string
  port: number
}

interface Place {
  address: string
  port: number
}

export async function isOwnPort(
  { address, port }: Place,
  services: OwnService[],
  lookup: (host: string) => Promise<string[]>
): Promise<boolean> {
  const isOwn = isOwnAddress(address)
  for (const service of services.filter((one) => one.port === port)) {
    const addresses = await lookup(service.host)
    if (addresses.some((one) => plainAddress(one) === plainAddress(address) || (isOwn && isOwnAddress(one))))
      return true
  }
  return isOwn && (await isListener(port))
}

/** Whether this process or another one of this program listens on the port. Needs /proc. */
async function isListener(port: number): Promise<boolean> {
  const listening = localSockets().filter((socket) => socket.isListening && socket.port === port)
  for (const { inode } of listening) {
    const holders = await holdersOf(inode, (pid) => pid === process.pid || isThisProgram(pid))
    if (holders.length > 0) return true
  }
  return false
}

function isThisProgram(pid: number): boolean {
  const words = textOf(`/proc/${pid}/cmdline`).split('\0')
  return words
    .filter((word) => /(^|\/)(dist|server)\/(main|gateway|gateway-main)\.(mjs|ts)$/.test(word))
    .some((word) => {
      const root = dirname(dirname(resolve(targetOf(`/proc/${pid}/cwd`), word)))
      return packageAt(`/proc/${pid}/root${root}`) === 'mcp-orchestrator'
    })
}

function packageAt(root: string): unknown {
  try {
    return JSON.parse(readFileSync(`${root}/package.json`, 'utf8')).name
  } catch {
    return undefined
  }
}
