import { createHash } from 'node:crypto'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { canonicalJson, type OfferedTool, WORKSPACE } from './offered-tool.ts'

const SPACE = 'tool-definitions'

export interface DefinitionChange {
  before: string
  after: string
}

type DefinedTool = Omit<OfferedTool, 'definition'>

/**
 * Remembers every tool's definition as first seen, for the chat and the gateway alike. One that changes afterwards may have been
 * changed to mislead: its calls are shown to a human, with the difference, until someone accepts it. The sandbox's own tools come
 * with this program and its image.
 */
export function createDefinitionGuard(facts: KeyValueStore) {
  /** Hashes of the texts as last found in the store; saves asking it about every tool at every step. */
  const accepted = new Map<string, string>()
  let loading: Promise<void> | undefined
  const load = () => {
    loading ??= facts.list(SPACE).then(
      (rows) => {
        for (const { key, value } of rows) accepted.set(key, sha256(String(value)))
      },
      (error) => {
        loading = undefined
        throw error
      }
    )
    return loading
  }
  return {
    /** The changes of those offered tools whose definition is not the accepted one, by model name. */
    async changes(tools: DefinedTool[]): Promise<Map<string, DefinitionChange>> {
      await load()
      const changed = new Map<string, DefinitionChange>()
      for (const tool of tools) {
        if (tool.server === WORKSPACE) continue
        const key = keyOf(tool)
        const after = describe(tool)
        if (accepted.get(key) === sha256(after)) continue
        const before = (await facts.add(SPACE, key, after)) ? after : await facts.get(SPACE, key)
        accepted.set(key, sha256(String(before)))
        if (before !== after) changed.set(tool.modelName, { before: String(before), after })
      }
      return changed
    },
    /** `text` is the definition that the human was shown. */
    async accept(server: string, name: string, text: string): Promise<void> {
      await facts.set(SPACE, keyOf({ server, name }), text)
      accepted.set(keyOf({ server, name }), sha256(text))
    }
  }
}

export type DefinitionGuard = ReturnType<typeof createDefinitionGuard>

function keyOf({ server, name }: Pick<DefinedTool, 'server' | 'name'>): string {
  return JSON.stringify([server, name])
}

/** Annotations count: one that suddenly says that it only reads is called more freely. */
function describe({ name, description, inputSchema, annotations }: DefinedTool): string {
  return canonicalJson({ name, description, inputSchema, annotations })
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
