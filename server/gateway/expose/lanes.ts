import type { ClientCapabilities } from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import { capabilityKey } from '../../connections/asking/peer.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { ClientLane } from './client-lane.ts'
import type { JoinLane } from './shared-lanes.ts'

export interface LaneRequest {
  server: string
  caller: Caller
  capabilities: ClientCapabilities
  /** A server of the newer revision gets the client's capabilities with every request. */
  isModern: boolean
  /** The server's questions and messages can't be assigned to a request, so no other request may use the lane meanwhile. */
  alone: boolean
}

export interface Borrowed {
  lane: ClientLane
  release(): void
}

export type OpenLane = (caller: Caller, capabilities: ClientCapabilities) => ClientLane

const MAX_LANES = 256
const MAX_IDLE = 2

/** The lanes of one client (a connection or a session), or of all clients without one: then none may receive what belongs to another. */
export class Lanes {
  readonly #open: OpenLane
  readonly #isShared: boolean
  readonly #join: ((caller: Caller) => ReturnType<JoinLane>) | undefined
  #joined: ReturnType<JoinLane> | undefined
  /** The client wants what a shared lane can't give it. */
  #needsOwn = false
  readonly #common = new BoundedMap<string, ClientLane>(MAX_LANES, (lane) => lane.close())
  readonly #idle = new Map<string, ClientLane[]>()
  readonly #busy = new Set<ClientLane>()

  /** `join` gives the lane that this client shares with others as long as it can be asked nothing. */
  constructor(
    open: OpenLane,
    { isShared = false, join }: { isShared?: boolean; join?: (caller: Caller) => ReturnType<JoinLane> } = {}
  ) {
    this.#open = open
    this.#join = join
    this.#isShared = isShared
  }

  borrow({ server, caller, capabilities: declared, isModern, alone }: LaneRequest): Borrowed {
    // Shared: so that one connection serves all kinds of clients.
    const capabilities = this.#isShared && isModern ? {} : declared
    const key = JSON.stringify([caller.owner, capabilityKey(capabilities)])
    if (this.#join && !this.#needsOwn && !alone && capabilityKey(declared) === '') {
      this.#joined ??= this.#join(caller)
      return { lane: this.#joined.lane, release: () => {} }
    }
    if (!alone || !this.#isShared) {
      const known = this.#common.get(key)
      const lane = known ?? this.#open(caller, capabilities)
      if (!known) this.#common.set(key, lane)
      return { lane, release: () => {} }
    }
    const place = `${server}\n${key}`
    const lane = this.#idle.get(place)?.pop() ?? this.#open(caller, capabilities)
    this.#busy.add(lane)
    return { lane, release: () => this.#giveBack(place, lane) }
  }

  /** From now on, this client has lanes of its own: log messages and subscriptions are for it alone. */
  leaveShared(): void {
    this.#needsOwn = true
    this.#leave()
  }

  /** The client seems to be gone: its servers stop until it comes back. */
  rest(): void {
    this.#leave()
    for (const lane of this.all()) lane.rest()
  }

  #leave(): void {
    this.#joined?.leave()
    this.#joined = undefined
  }

  all(): ClientLane[] {
    return [...this.#common.values(), ...[...this.#idle.values()].flat(), ...this.#busy]
  }

  close(): void {
    this.#leave()
    for (const lane of this.all()) lane.close()
    this.#common.clear()
    this.#idle.clear()
    this.#busy.clear()
  }

  #giveBack(place: string, lane: ClientLane): void {
    if (!this.#busy.delete(lane)) return
    const idle = this.#idle.get(place) ?? []
    if (idle.length >= MAX_IDLE || this.#idle.size >= MAX_LANES) lane.close()
    else this.#idle.set(place, [...idle, lane])
  }
}
