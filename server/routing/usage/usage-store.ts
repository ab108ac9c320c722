/** Past requests, indexed by their words. Removing an example removes exactly what it contributed. */
import type { UsageExample } from '../port.ts'
import { maskLiterals } from '../words/mask-literals.ts'
import { pairsOf, terms, words } from '../words/words.ts'

const MAX_FEATURE_TERMS = 60
const MAX_REQUEST = 2000

export interface Feature {
  text: string
  /** Ids of the examples with this feature, ascending. */
  examples: number[]
  /** Parallel lists: the tools that were requested with it, and its weight for each (`usage-model.ts`). */
  tools: UsedTool[]
  pulls: number[]
}

export interface UsedTool {
  key: string
  examples: number
  /** Scratch value for sums over features; otherwise 0. */
  sum: number
}

export interface Stored {
  example: UsageExample
  tool: UsedTool
  features: Feature[]
  /** Its length as a vector of rarities, computed at `normAt` (see `normOf`). */
  norm: number
  normAt: number
}

/** Words as written, including small ones (how people ask distinguishes tools), their stems, and pairs of stems. */
export function featureTexts(request: string): string[] {
  const { text } = maskLiterals(request.slice(0, MAX_REQUEST))
  const found = terms(text, 'prose', MAX_FEATURE_TERMS)
  return [...new Set([...found, ...words(text, 'prose').slice(0, MAX_FEATURE_TERMS)]), ...pairsOf(found)]
}

function addTool(feature: Feature, tool: UsedTool): void {
  if (feature.tools.includes(tool)) return
  feature.tools.push(tool)
  feature.pulls.push(0)
}

export function rarity(store: UsageStore, feature: Feature | undefined): number {
  return Math.log(1 + store.size / (feature?.examples.length ?? 0.5))
}

/** Cached until the store changes, because rarities change with it. */
export function normOf(store: UsageStore, entry: Stored): number {
  if (entry.normAt !== store.version) {
    let sum = 0
    for (const feature of entry.features) sum += rarity(store, feature) ** 2
    entry.norm = Math.sqrt(sum)
    entry.normAt = store.version
  }
  return entry.norm
}

export type UsageStore = ReturnType<typeof createUsageStore>

export function createUsageStore() {
  let stored: Stored[] = []
  let firstId = 0
  let version = 0
  const features = new Map<string, Feature>()
  const tools = new Map<string, UsedTool>()

  return {
    features: features as ReadonlyMap<string, Feature>,
    get size() {
      return stored.length
    },
    /** Changes whenever an example is added or removed. */
    get version() {
      return version
    },
    /** Id of the oldest example; ids only grow. */
    get firstId() {
      return firstId
    },
    add(example: UsageExample, key: string): void {
      const id = firstId + stored.length
      const tool = tools.get(key) ?? { key, examples: 0, sum: 0 }
      tools.set(key, tool)
      const own = featureTexts(example.request).map((text) => {
        const feature = features.get(text) ?? { text, examples: [], tools: [], pulls: [] }
        features.set(text, feature)
        feature.examples.push(id)
        addTool(feature, tool)
        return feature
      })
      tool.examples += 1
      version += 1
      const kept = { ...example, request: example.request.slice(0, MAX_REQUEST) }
      stored.push({ example: kept, tool, features: own, norm: 0, normAt: -1 })
    },
    dropOldest(): void {
      const oldest = stored.shift()
      if (!oldest) return
      firstId += 1
      version += 1
      for (const feature of oldest.features) {
        feature.examples.shift()
        if (!feature.examples.some((id) => stored[id - firstId]?.tool === oldest.tool)) {
          const at = feature.tools.indexOf(oldest.tool)
          feature.tools.splice(at, 1)
          feature.pulls.splice(at, 1)
        }
        if (feature.examples.length === 0) features.delete(feature.text)
      }
      oldest.tool.examples -= 1
      if (oldest.tool.examples === 0) tools.delete(oldest.tool.key)
    },
    entry: (id: number): Stored | undefined => stored[id - firstId],
    examples: (): readonly UsageExample[] => stored.map(({ example }) => example),
    clear(): void {
      stored = []
      version += 1
      features.clear()
      tools.clear()
    }
  }
}
