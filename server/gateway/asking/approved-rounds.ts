import { BoundedMap } from '../../lib/bounded-map.ts'
import { callHash } from './client-prompter.ts'
import type { ToolRequest } from './tool-request.ts'

/** The source of an approval: the client's user, the inbox, or an earlier "do not ask again". */
export type ApprovedBy = 'client' | 'inbox' | 'memory'

/** A call that its server answered with a question, and that the client makes again with the answer. */
export interface NextRound extends Pick<ToolRequest, 'server' | 'tool' | 'args'> {
  owner: string
  /** The state that the server wants back with the answer. */
  state: unknown
}

const HOLD_MS = 600_000
const MAX_OPEN = 1000

/** An approval of a call also covers its next round, once per round. Only in this process: another one asks again. */
export class ApprovedRounds {
  readonly #open = new BoundedMap<string, { by: ApprovedBy; until: number }>(MAX_OPEN)

  keep(round: NextRound, by: ApprovedBy): void {
    this.#open.set(keyOf(round), { by, until: Date.now() + HOLD_MS })
  }

  take(round: NextRound): ApprovedBy | undefined {
    const key = keyOf(round)
    const found = this.#open.get(key)
    this.#open.delete(key)
    return found && found.until > Date.now() ? found.by : undefined
  }
}

function keyOf({ owner, server, tool, args, state }: NextRound): string {
  return callHash([owner, server, tool.name, tool.hash, args, state])
}
