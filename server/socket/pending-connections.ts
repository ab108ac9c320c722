/** An engine.io connection that has not logged in yet. */
export interface RawConnection {
  close(discard?: boolean): unknown
  once(event: 'close', listener: () => void): unknown
}

/** Limit for all addresses together. */
const MAX_IN_ALL = 2000
const MAX_ATTEMPTS = 5

/**
 * Connections that have not logged in yet. Each group (an address) may have a few. One more closes the oldest of the group, because a
 * real client logs in at once, and idle connections must not lock others out.
 */
export class PendingConnections {
  readonly #maxPerGroup: number
  readonly #groups = new Map<string, Set<RawConnection>>()
  /** Oldest first, with the number of failed logins. */
  readonly #pending = new Map<RawConnection, { group: string; attempts: number }>()

  constructor(maxPerGroup: number) {
    this.#maxPerGroup = maxPerGroup
  }

  add(group: string, connection: RawConnection): void {
    const ofGroup = this.#groups.get(group) ?? new Set()
    this.#groups.set(group, ofGroup.add(connection))
    this.#pending.set(connection, { group, attempts: 0 })
    connection.once('close', () => this.remove(connection))
    const [oldestOfGroup] = ofGroup
    const [oldest] = this.#pending.keys()
    if (oldestOfGroup && ofGroup.size > this.#maxPerGroup) this.#close(oldestOfGroup)
    else if (oldest && this.#pending.size > MAX_IN_ALL) this.#close(oldest)
  }

  has(connection: RawConnection): boolean {
    return this.#pending.has(connection)
  }

  /** Called when the connection has logged in or is closed. */
  remove(connection: RawConnection): void {
    const group = this.#pending.get(connection)?.group
    if (group === undefined) return
    this.#pending.delete(connection)
    const ofGroup = this.#groups.get(group)
    ofGroup?.delete(connection)
    if (ofGroup?.size === 0) this.#groups.delete(group)
  }

  /** Called when a login was refused; after a few, the connection is closed. */
  failed(connection: RawConnection): void {
    const state = this.#pending.get(connection)
    if (state && ++state.attempts >= MAX_ATTEMPTS) this.#close(connection)
  }

  #close(connection: RawConnection): void {
    this.remove(connection)
    connection.close(true)
  }
}
