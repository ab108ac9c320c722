/** Past requests, by their words; an example that leaves takes exactly its own contribution with it. */
import type { UsageExample } from './port.ts'
import { pairsOf, terms } from './words.ts'

const MAX_FEATURE_TERMS = 60
const MAX_REQUEST = 2000

export interface Feature {
  text: string
  /** Ids of the examples that have it, ascending. */
  examples: number[]
}

export interface UsedTool {
  key: string
  examples: number
  /** Features of all its examples, with repetitions. */
  features: number
  /** Scratch of whoever counts over examples; 0 between counts. */
  tally: number
}

export interface Stored {
  example: UsageExample
  tool: UsedTool
  features: Feature[]
}

export interface UsageStore {
  readonly size: number
  /** Id of the oldest example; they only grow. */
  readonly firstId: number
  readonly features: ReadonlyMap<string, Feature>
  add(example: UsageExample, key: string): void
  dropOldest(): void
  entry(id: number): Stored | undefined
  examples(): readonly UsageExample[]
  clear(): void
}

/** Words and pairs of words. */
export function featureTexts(request: string): string[] {
  const found = terms(request.slice(0, MAX_REQUEST), 'prose', MAX_FEATURE_TERMS)
  return [...new Set(found), ...pairsOf(found)]
}

export function createUsageStore(): UsageStore {
  let stored: Stored[] = []
  let firstId = 0
  const features = new Map<string, Feature>()
  const tools = new Map<string, UsedTool>()

  return {
    features,
    get size() {
      return stored.length
    },
    get firstId() {
      return firstId
    },
    add(example, key) {
      const id = firstId + stored.length
      const own = featureTexts(example.request).map((text) => {
        const feature = features.get(text) ?? { text, examples: [] }
        features.set(text, feature)
        feature.examples.push(id)
        return feature
      })
      const tool = tools.get(key) ?? { key, examples: 0, features: 0, tally: 0 }
      tools.set(key, tool)
      tool.examples += 1
      tool.features += own.length
      stored.push({ example: { ...example, request: example.request.slice(0, MAX_REQUEST) }, tool, features: own })
    },
    dropOldest() {
      const oldest = stored.shift()
      if (!oldest) return
      firstId += 1
      for (const feature of oldest.features) {
        feature.examples.shift()
        if (feature.examples.length === 0) features.delete(feature.text)
      }
      oldest.tool.examples -= 1
      oldest.tool.features -= oldest.features.length
      if (oldest.tool.examples === 0) tools.delete(oldest.tool.key)
    },
    entry: (id) => stored[id - firstId],
    examples: () => stored.map(({ example }) => example),
    clear() {
      stored = []
      features.clear()
      tools.clear()
    }
  }
}
