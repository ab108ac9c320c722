/**
 * The names of the servers' tools and prompts in the pass-through mode. Owns prefixes, length limits and collisions; knows no
 * tools. Invariant: a name always stands for the same tool of the same server, whatever else exists or was listed before.
 */
import { createHash } from 'node:crypto'

export interface Target {
  server: string
  name: string
}

const SEPARATOR = '__'
/** The longest name that every model provider accepts. */
const MAX_NAME = 64
const HASH_CHARS = 8
const MAX_REMEMBERED = 20_000

export class ExposedNames {
  /** The one exposed server, without prefixes; undefined for all. */
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
    // The name can't be split again, or collides with another: a hash makes it unique, and the mapping is remembered.
    const hash = createHash('sha256')
      .update(JSON.stringify([server, name]))
      .digest('hex')
      .slice(0, HASH_CHARS)
    const exposed = `${fit.slice(0, MAX_NAME - HASH_CHARS - 1)}_${hash}`
    if (this.#altered.size < MAX_REMEMBERED) this.#altered.set(exposed, { server, name })
    return exposed
  }

  /** Does not check that the server or tool exists. */
  target(exposed: string): Target | undefined {
    if (this.#only !== undefined) return { server: this.#only, name: exposed }
    return this.#altered.get(exposed) ?? this.#split(exposed)
  }

  /** A server's name may contain anything, even the separator. */
  #split(exposed: string): Target | undefined {
    const at = exposed.indexOf(SEPARATOR)
    return at < 1 ? undefined : { server: exposed.slice(0, at), name: exposed.slice(at + SEPARATOR.length) }
  }
}
