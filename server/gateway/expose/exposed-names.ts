/**
 * What clients of the pass-through mode call a server's tools and prompts. Owns prefixes, length limits and collisions; knows no
 * tools. Invariant: a name always stands for the same tool of the same server, whatever else is there or was listed before.
 */
import { createHash } from 'node:crypto'

export interface Target {
  server: string
  name: string
}

const SEPARATOR = '__'
/** The longest that every model provider takes. */
const MAX_NAME = 64
const HASH_CHARS = 8
const MAX_REMEMBERED = 20_000

export class ExposedNames {
  /** The one server that is exposed, without prefixes; undefined: all of them. */
  readonly #only: string | undefined
  readonly #altered = new Map<string, Target>()

  constructor(only: string | undefined) {
    this.#only = only
  }

  of(server: string, name: string): string {
    if (this.#only !== undefined) return name
    const plain = `${server}${SEPARATOR}${name}`
    const fit = plain.replace(/[^A-Za-z0-9_-]/g, '_')
    if (plain === fit && plain.length <= MAX_NAME && this.#split(plain)?.server === server) return plain
    // Not to be read back, or not to be told from another: the hash makes it one of a kind, and is remembered.
    const hash = createHash('sha256')
      .update(JSON.stringify([server, name]))
      .digest('hex')
      .slice(0, HASH_CHARS)
    const exposed = `${fit.slice(0, MAX_NAME - HASH_CHARS - 1)}_${hash}`
    if (this.#altered.size < MAX_REMEMBERED) this.#altered.set(exposed, { server, name })
    return exposed
  }

  /** Whether there is such a server or tool is for the caller to see. */
  target(exposed: string): Target | undefined {
    if (this.#only !== undefined) return { server: this.#only, name: exposed }
    return this.#altered.get(exposed) ?? this.#split(exposed)
  }

  /** A server's name may have anything in it, a separator included. */
  #split(exposed: string): Target | undefined {
    const at = exposed.indexOf(SEPARATOR)
    return at < 1 ? undefined : { server: exposed.slice(0, at), name: exposed.slice(at + SEPARATOR.length) }
  }
}
