/**
 * Past requests per owner: nobody's routing depends on what another person asked for. Invariant: all owners together keep at most
 * `maxExamples`.
 */
import type { UsageExample } from '../port.ts'
import { createUsageMemory, type Schedule, type UsageMemory } from './usage-memory.ts'

/** Examples that were stored before they had an owner belong to the local user. */
const NO_OWNER = 'local'
const MAX_OWNERS = 500

export type OwnedUsage = ReturnType<typeof createOwnedUsage>

export function createOwnedUsage(maxExamples: number, schedule?: Schedule) {
  /** The owner who learned last comes last. */
  const memories = new Map<string, UsageMemory>()
  const size = () => [...memories.values()].reduce((sum, memory) => sum + memory.examples().length, 0)
  let total = 0
  return {
    learn(example: UsageExample, key: string): void {
      const owner = example.owner ?? NO_OWNER
      const own = memories.get(owner) ?? createUsageMemory(maxExamples, schedule)
      memories.delete(owner)
      memories.set(owner, own)
      own.learn(example, key)
      total += 1
      if (memories.size <= MAX_OWNERS && total <= maxExamples) return
      for (const other of memories.keys()) {
        if (memories.size <= MAX_OWNERS && size() <= maxExamples) break
        if (other !== owner) memories.delete(other)
      }
      total = size()
    },
    opinion: (request: string, owner = NO_OWNER) => memories.get(owner)?.opinion(request),
    examples: (): readonly UsageExample[] =>
      [...memories.values()].flatMap((memory) => memory.examples()).toSorted((a, b) => a.at - b.at),
    clear: () => memories.clear()
  }
}
