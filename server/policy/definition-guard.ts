import { createHash } from 'node:crypto'
import { canonicalJson, type OfferedTool, type ToolDefinitionInput } from '../calls/offered-tool.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'

const SPACE = 'tool-definitions'
/** Of one server: one that lists ever new names shall fill no disk. */
const MAX_KEPT = 2000
const MAX_KEPT_CHARS = 10_000_000
const NOT_KEPT = 'nothing: this server has listed so many tools that a new one is not taken on trust'

export interface DefinitionChange {
  before: string
  after: string
}

type DefinedTool = Pick<OfferedTool, 'server' | 'name' | 'modelName' | 'whole'>

/** Of one server. Hashes of the texts as last found in the store: saves asking it about every tool at every step. */
class Kept {
  readonly #hashes = new Map<string, string>()
  #chars = 0

  has(name: string, text: string): boolean {
    return this.#hashes.get(name) === sha256(text)
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
 * Remembers every tool's definition as first seen, for the chat and the gateway alike. One that changes afterwards may have been
 * changed to mislead: its calls are shown to a human, with the difference, until someone accepts it. So are those of a new tool
 * of a server that has had too many. The sandbox's own tools are not its business: they come with this program and its image.
 */
export function createDefinitionGuard(keyValues: KeyValueStore) {
  const accepted = new Map<string, Kept>()
  const keptOf = (server: string): Kept => {
    const kept = accepted.get(server) ?? new Kept()
    accepted.set(server, kept)
    return kept
  }
  let loading: Promise<void> | undefined
  const load = () => {
    loading ??= keyValues.list(SPACE).then(
      (rows) => {
        for (const { key, value } of rows) {
          const [server, name] = JSON.parse(key)
          keptOf(server).set(name, String(value))
        }
      },
      (error) => {
        loading = undefined
        throw error
      }
    )
    return loading
  }
  /** What was accepted, which for a tool that is new is what it is now; undefined when there is no room for it. */
  const acceptedText = async (tool: DefinedTool, text: string): Promise<string | undefined> => {
    const kept = keptOf(tool.server)
    if (kept.has(tool.name, text)) return text
    const key = keyOf(tool)
    const isAdded = kept.hasRoomFor(text) && (await keyValues.add(SPACE, key, text))
    const found = isAdded ? text : await keyValues.get(SPACE, key)
    if (found === null) return undefined
    kept.set(tool.name, String(found))
    return String(found)
  }
  return {
    /** The changes of those offered tools whose definition is not the accepted one, by model name. */
    async changes(tools: DefinedTool[]): Promise<Map<string, DefinitionChange>> {
      await load()
      const changed = new Map<string, DefinitionChange>()
      for (const tool of tools) {
        const after = describe(tool.whole)
        const before = await acceptedText(tool, after)
        if (before !== after) changed.set(tool.modelName, { before: before ?? NOT_KEPT, after })
      }
      return changed
    },
    /** `text` is the definition that the human was shown. */
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

/** All that any client or its model is given. Annotations too: one that suddenly says that it only reads is called more freely. */
function describe(tool: ToolDefinitionInput): string {
  const { name, inputSchema, outputSchema, annotations, shown } = tool
  const description = (tool.description ?? '').toWellFormed()
  return canonicalJson({ name, description, inputSchema, outputSchema, annotations, shown })
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
