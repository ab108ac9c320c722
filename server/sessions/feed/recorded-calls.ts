import { callAbout } from '../../../contract/call-about.ts'
import type { CallEntry, Transcript } from '../../../contract/transcript.ts'
import { argumentsHash } from '../../audit/audit.ts'

export interface RecordedCall {
  session?: string | undefined
  server?: string | undefined
  tool?: string | undefined
  argumentsHash?: string | undefined
}

const MAX_SESSIONS = 200
const MAX_CALLS = 5000

/**
 * Says what the calls in the audit log were about. The audit log has only hashes of the arguments, so they are looked up in the
 * session's own log. The caller must check access to that session.
 */
export class RecordedCalls {
  readonly #transcript: (sessionId: string) => Promise<Transcript>
  /** By session, the one used last at the end. An empty text: looked up, and not found. */
  readonly #known = new Map<string, Map<string, string>>()

  constructor(transcript: (sessionId: string) => Promise<Transcript>) {
    this.#transcript = transcript
  }

  async about(call: RecordedCall): Promise<string | undefined> {
    const { session, server, tool, argumentsHash: hash } = call
    if (session === undefined || server === undefined || tool === undefined || hash === undefined) return undefined
    const key = keyOf(server, tool, hash)
    const known = this.#known.get(session)
    const found = known?.get(key) === undefined ? await this.#read(session, key) : known
    this.#known.delete(session)
    this.#known.set(session, found)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_SESSIONS) break
      this.#known.delete(oldest)
    }
    return found.get(key) || undefined
  }

  async #read(sessionId: string, wanted: string): Promise<Map<string, string>> {
    const { calls } = await this.#transcript(sessionId)
    const found = new Map<string, string>()
    for (const call of Object.values(calls).slice(-MAX_CALLS)) for (const args of argsOf(call)) add(found, call, args)
    if (!found.has(wanted)) found.set(wanted, '')
    return found
  }
}

/** As the model wrote them and as they ran: a rejected call is recorded with the former. */
function argsOf({ args, decision }: CallEntry): Record<string, unknown>[] {
  return decision?.editedArgs ? [args, decision.editedArgs] : [args]
}

function add(found: Map<string, string>, { server, name }: CallEntry, args: Record<string, unknown>): void {
  found.set(keyOf(server, name, argumentsHash(args)), callAbout({ server, name }, args))
}

const keyOf = (...parts: string[]) => parts.join('\0')
