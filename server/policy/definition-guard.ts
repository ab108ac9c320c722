import { hash as digest } from 'node:crypto'
import type { OfferedTool, ToolDefinitionInput } from '../calls/offered-tool.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { Lazy } from '../lib/waiting/lazy.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'

const SPACE = 'tool-definitions'
/** Limits per server, so that ever-changing names can't fill the disk. */
const MAX_KEPT = 2000
const MAX_KEPT_CHARS = 10_000_000
const NOT_KEPT = 'nothing: this server has listed too many tools to trust a new one'

export interface DefinitionChange {
  before: string
  after: string
}

type DefinedTool = Pick<OfferedTool, 'server' | 'name' | 'modelName' | 'whole'>

/** Hashes of one server's accepted definitions as last read from the store. Saves a store lookup per tool and step. */
class Kept {
  readonly #hashes = new Map<string, string>()
  #chars = 0

  has(name: string, hash: string): boolean {
    return this.#hashes.get(name) === hash
  }

  hasRoomFor(text: string): boolean {
    return this.#hashes.size < MAX_KEPT && this.#chars + text.length <= MAX_KEPT_CHARS
  }

  set(name: string, text: string): void {
    if (!this.#hashes.has(name)) this.#chars += text.length
    this.#hashes.set(name, sha256(text))
  }
}

/**
 * Remembers every tool's definition as first seen, for the chat and the gateway. A definition that changes later may be an
 * attempt to mislead, so calls of the tool need approval, with the difference shown, until someone accepts it. The same goes for
 * a new tool of a server that has listed too many. The sandbox's own tools are not checked: they come with this program and its
 * image.
 */
export function createDefinitionGuard(keyValues: KeyValueStore) {
  const accepted = new Map<string, Kept>()
  const keptOf = (server: string): Kept => {
    const kept = accepted.get(server) ?? new Kept()
    accepted.set(server, kept)
    return kept
  }
  const stored = new Lazy(async () => {
    for (const { key, value } of await keyValues.list(SPACE)) {
      const [server, name] = JSON.parse(key)
      keptOf(server).set(name, String(value))
    }
  })
  /** The accepted definition. A new tool's current definition is accepted; undefined if there is no room for it. */
  const acceptedText = async (tool: DefinedTool, { text, hash }: Described): Promise<string | undefined> => {
    const kept = keptOf(tool.server)
    if (kept.has(tool.name, hash)) return text
    const key = keyOf(tool)
    const isAdded = kept.hasRoomFor(text) && (await keyValues.add(SPACE, key, text))
    const found = isAdded ? text : await keyValues.get(SPACE, key)
    if (found === null) return undefined
    kept.set(tool.name, String(found))
    return String(found)
  }
  return {
    /** The changes of the offered tools whose definition is not the accepted one, by model name. */
    async changes(tools: DefinedTool[]): Promise<Map<string, DefinitionChange>> {
      await stored.get()
      const changed = new Map<string, DefinitionChange>()
      for (const tool of tools) {
        const described = describe(tool.whole)
        const { text: after } = described
        const before = await acceptedText(tool, described)
        if (before !== after) changed.set(tool.modelName, { before: before ?? NOT_KEPT, after })
      }
      return changed
    },
    /** `text` is the definition that the person was shown. */
    async accept(server: string, name: string, text: string): Promise<void> {
      await keyValues.set(SPACE, keyOf({ server, name }), text)
      keptOf(server).set(name, text)
    }
  }
}

export type DefinitionGuard = ReturnType<typeof createDefinitionGuard>

function keyOf({ server, name }: Pick<DefinedTool, 'server' | 'name'>): string {
  return JSON.stringify([server, name])
}

interface Described {
  text: string
  hash: string
}

/** Every call of a tool compares its definition, which is the same object until the server lists its tools again. */
const described = new WeakMap<ToolDefinitionInput, Described>()

/** Everything that a client or its model sees. Annotations too: a tool that suddenly claims to be read-only is called more freely. */
function describe(tool: ToolDefinitionInput): Described {
  const known = described.get(tool)
  if (known) return known
  const { name, inputSchema, outputSchema, annotations, shown } = tool
  const description = (tool.description ?? '').toWellFormed()
  const text = canonicalJson({ name, description, inputSchema, outputSchema, annotations, shown })
  const fresh = { text, hash: sha256(text) }
  described.set(tool, fresh)
  return fresh
}

function sha256(text: string): string {
  return digest('sha256', text, 'base64')
}
