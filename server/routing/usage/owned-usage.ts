/**
 * Past requests per owner: nobody's routing depends on what another person asked for. Invariants: all owners together keep at most
 * `maxExamples`, and only those who have most lose some.
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
  let total = 0
  /** If several are equal, it is the one whose owner learned longest ago. */
  const extreme = (isMore: (a: UsageMemory, b: UsageMemory) => boolean, except?: string) =>
    [...memories].filter(([owner]) => owner !== except).reduce((most, each) => (isMore(each[1], most[1]) ? each : most))
  return {
    learn(example: UsageExample, key: string): void {
      const owner = example.owner ?? NO_OWNER
      const own = memories.get(owner) ?? createUsageMemory(maxExamples, schedule)
      memories.delete(owner)
      memories.set(owner, own)
      total -= own.size
      own.learn(example, key)
      total += own.size
      // Someone may have made up many owners, each with few requests.
      if (memories.size > MAX_OWNERS) {
        const [least, memory] = extreme((a, b) => a.size < b.size, owner)
        memories.delete(least)
        total -= memory.size
      }
      if (total > maxExamples) {
        extreme((a, b) => a.size > b.size)[1].dropOldest()
        total -= 1
      }
    },
    opinion: (request: string, owner = NO_OWNER) => memories.get(owner)?.opinion(request),
    examples: (): readonly UsageExample[] =>
      [...memories.values()].flatMap((memory) => memory.examples()).toSorted((a, b) => a.at - b.at),
    clear(): void {
      memories.clear()
      total = 0
    }
  }
}
