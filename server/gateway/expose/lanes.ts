import type { ClientCapabilities } from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import { capabilityKey } from '../../connections/peer.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { ClientLane } from './client-lane.ts'

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

export interface Lanes {
  borrow(request: LaneRequest): Borrowed
  all(): ClientLane[]
  close(): void
}

type OpenLane = (caller: Caller, capabilities: ClientCapabilities) => ClientLane

const MAX_LANES = 256
const MAX_IDLE = 2

/** For one client, with a connection or a session: all its requests use the same lane. */
export class OwnLanes implements Lanes {
  readonly #open: OpenLane
  /** In the newer revision every request states the client's capabilities; usually they stay the same. */
  readonly #lanes = boundedLanes()

  constructor(open: OpenLane) {
    this.#open = open
  }

  borrow({ caller, capabilities }: LaneRequest): Borrowed {
    const key = JSON.stringify([caller.owner, capabilityKey(capabilities)])
    return { lane: getOrOpen(this.#lanes, key, () => this.#open(caller, capabilities)), release: () => {} }
  }

  all(): ClientLane[] {
    return [...this.#lanes.values()]
  }

  close(): void {
    for (const lane of this.#lanes.values()) lane.close()
    this.#lanes.clear()
  }
}

/** For requests without a connection: many clients, and none may receive what belongs to another. */
export class SharedLanes implements Lanes {
  readonly #open: OpenLane
  readonly #common = boundedLanes()
  readonly #idle = new Map<string, ClientLane[]>()
  readonly #busy = new Set<ClientLane>()

  constructor(open: OpenLane) {
    this.#open = open
  }

  borrow({ server, caller, capabilities: declared, isModern, alone }: LaneRequest): Borrowed {
    // So that one connection serves all kinds of clients.
    const capabilities = isModern ? {} : declared
    const key = JSON.stringify([caller.owner, capabilityKey(capabilities)])
    if (!alone) {
      return { lane: getOrOpen(this.#common, key, () => this.#open(caller, capabilities)), release: () => {} }
    }
    const place = `${server}\n${key}`
    const lane = this.#idle.get(place)?.pop() ?? this.#open(caller, capabilities)
    this.#busy.add(lane)
    return { lane, release: () => this.#giveBack(place, lane) }
  }

  all(): ClientLane[] {
    return [...this.#common.values(), ...[...this.#idle.values()].flat(), ...this.#busy]
  }

  close(): void {
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

function boundedLanes(): Map<string, ClientLane> {
  return new BoundedMap(MAX_LANES, (lane) => lane.close())
}

function getOrOpen(lanes: Map<string, ClientLane>, key: string, open: () => ClientLane): ClientLane {
  const known = lanes.get(key)
  if (known) return known
  const lane = open()
  lanes.set(key, lane)
  return lane
}
