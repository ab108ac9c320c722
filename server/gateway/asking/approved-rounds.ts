import { callHash } from './client-prompter.ts'
import type { ToolRequest } from './tool-request.ts'

/** Who approved a call: the client's user, the inbox, or an earlier "do not ask again". */
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
  readonly #open = new Map<string, { by: ApprovedBy; until: number }>()

  keep(round: NextRound, by: ApprovedBy): void {
    const [oldest] = this.#open.keys()
    if (this.#open.size >= MAX_OPEN && oldest !== undefined) this.#open.delete(oldest)
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
