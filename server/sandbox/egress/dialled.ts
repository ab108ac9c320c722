import type { Socket } from 'node:net'
import { plainAddress } from '../../lib/web/local-sockets.ts'

/** A request may still wait to be read when the connection that it came through has ended. */
const LINGER_MS = 10_000

const dialled = new Set<string>()

/** Remembers a connection of an egress proxy: what comes through it was sent by a server, not by this process. */
export function rememberDialled(socket: Socket): void {
  const name = nameOf(socket.localAddress, socket.localPort)
  dialled.add(name)
  socket.once('close', () => setTimeout(() => dialled.delete(name), LINGER_MS).unref())
}

export function wasDialled(address: string | undefined, port: number | undefined): boolean {
  return dialled.size > 0 && dialled.has(nameOf(address, port))
}

function nameOf(address: string | undefined, port: number | undefined): string {
  return `${plainAddress(address ?? '')} ${port}`
}
