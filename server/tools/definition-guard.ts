import type { KeyValueStore } from '../storage/key-value-store.ts'
import { canonicalJson, type OfferedTool, WORKSPACE } from './offered-tool.ts'

const SPACE = 'tool-definitions'

export interface DefinitionChange {
  before: string
  after: string
}

/**
 * Remembers every tool's definition as first seen. One that changes afterwards may have been changed to mislead: its calls are
 * shown to a human, with the difference, until someone accepts it. The sandbox's own tools come with this program and its image.
 */
export function createDefinitionGuard(facts: KeyValueStore) {
  /** As last found in the store; saves asking it about every tool at every step. */
  const accepted = new Map<string, string>()
  return {
    /** The changes of those offered tools whose definition is not the accepted one, by model name. */
    async changes(tools: OfferedTool[]): Promise<Map<string, DefinitionChange>> {
      const changed = new Map<string, DefinitionChange>()
      for (const tool of tools) {
        if (tool.server === WORKSPACE) continue
        const key = keyOf(tool)
        const after = describe(tool)
        if (accepted.get(key) === after) continue
        const before = (await facts.add(SPACE, key, after)) ? after : await facts.get(SPACE, key)
        accepted.set(key, String(before))
        if (before !== after) changed.set(tool.modelName, { before: String(before), after })
      }
      return changed
    },
    /** `text` is the definition that the human was shown. */
    async accept(server: string, name: string, text: string): Promise<void> {
      await facts.set(SPACE, keyOf({ server, name }), text)
      accepted.set(keyOf({ server, name }), text)
    }
  }
}

export type DefinitionGuard = ReturnType<typeof createDefinitionGuard>

function keyOf({ server, name }: Pick<OfferedTool, 'server' | 'name'>): string {
  return JSON.stringify([server, name])
}

function describe({ name, description, inputSchema }: OfferedTool): string {
  return canonicalJson({ name, description, inputSchema })
}
