import type { Caller } from '../../calls/caller.ts'
import type { PeerNotification } from '../../connections/wire/call-input.ts'
import type { ClientLane, Standalone } from './client-lane.ts'

export type JoinLane = (caller: Caller, tell: (news: PeerNotification) => void) => { lane: ClientLane; leave(): void }

interface SharedLane {
  lane: ClientLane
  clients: Set<(news: PeerNotification) => void>
}

/** News that concern every client. Everything else may belong to one of them, and nobody knows to which. */
const FOR_ALL = new Set(['notifications/prompts/list_changed', 'notifications/resources/list_changed'])

/**
 * One lane for all clients of an owner that can be asked nothing: their servers have no questions for them, so one process serves them
 * all. It is closed when the last of them has left.
 */
export class SharedLanes {
  readonly #open: (caller: Caller, standalone: Standalone) => ClientLane
  readonly #lanes = new Map<string, SharedLane>()

  constructor(open: (caller: Caller, standalone: Standalone) => ClientLane) {
    this.#open = open
  }

  readonly join: JoinLane = (caller, tell) => {
    const shared = this.#lanes.get(caller.owner) ?? this.#create(caller)
    shared.clients.add(tell)
    const leave = () => {
      if (!shared.clients.delete(tell) || shared.clients.size > 0) return
      this.#lanes.delete(caller.owner)
      shared.lane.close()
    }
    return { lane: shared.lane, leave }
  }

  #create({ owner, door }: Caller): SharedLane {
    const clients: SharedLane['clients'] = new Set()
    const tell = (news: PeerNotification) => {
      if (FOR_ALL.has(news.method)) for (const client of clients) client(news)
    }
    const shared = { lane: this.#open({ owner, door }, { tell }), clients }
    this.#lanes.set(owner, shared)
    return shared
  }
}
