import { AppError } from '../lib/errors.ts'

const MAX_SOCKETS = 200

/** Counts open sockets by address, so that one client can't take them all. */
export class SocketsPerAddress {
  readonly #counts = new Map<string, number>()

  enter(address: string, socket: { conn: { once(event: 'close', listener: () => void): unknown } }): void {
    const count = this.#counts.get(address) ?? 0
    if (count >= MAX_SOCKETS) {
      throw new AppError(
        'unavailable',
        'too_many_connections',
        `${MAX_SOCKETS} connections are open from your address.`
      )
    }
    this.#counts.set(address, count + 1)
    socket.conn.once('close', () => this.#leave(address))
  }

  #leave(address: string): void {
    const left = (this.#counts.get(address) ?? 1) - 1
    if (left > 0) this.#counts.set(address, left)
    else this.#counts.delete(address)
  }
}
