/** Brings together what the words, the names and past requests say about each tool. */
import type { LexicalScores } from './lexical-scorer.ts'
import type { Named } from './named.ts'
import type { UsageOpinion } from './usage-memory.ts'

const MAYBE_NAMED = 0.2
const LEXICAL_SHARPNESS = 6
const LEXICAL_FLOOR = 0.007
const USAGE_WEIGHT = 1.7
const USAGE_FLOOR = 0.00003
const MODEL_SCALE = 4
/** More than anyone may ask for; of equal ones at the end all or none. */
const MAX_RANKED = 60

export interface Candidate {
  slot: number
  /** The request names it: it goes before all that are not named. */
  exact: boolean
  /** Log-odds up to a constant; comparable within one request only. */
  total: number
  /** Lexical score against the best one, 0 to 1. */
  lexical: number
  /** What past requests say, 0 to 1. */
  usage: number
}

export interface RankInput {
  /** Undefined: all tools; else only these. */
  only: ReadonlySet<number> | undefined
  serverOf(slot: number): string
  /** Decides between equals, so that the order never depends on the order of arrival. */
  keyOf(slot: number): string
  slotOf(key: string): number | undefined
  lexical: LexicalScores
  named: Named
  opinion: UsageOpinion | undefined
}

function shares(logits: Map<number, number>): Map<number, number> {
  let top = Number.NEGATIVE_INFINITY
  for (const logit of logits.values()) top = Math.max(top, logit)
  let sum = 0
  for (const logit of logits.values()) sum += Math.exp(logit - top)
  return new Map([...logits].map(([slot, logit]) => [slot, Math.exp(logit - top) / sum]))
}

function usageShares({ opinion, only, slotOf }: RankInput): Map<number, number> {
  const logits = new Map<number, number>()
  for (const [key, { votes, model }] of opinion?.byTool ?? []) {
    const slot = slotOf(key)
    // A tool that is gone, or not asked for, must not take part of the votes with it.
    if (slot === undefined || (only && !only.has(slot))) continue
    logits.set(slot, model / MODEL_SCALE + Math.log(votes + 0.01))
  }
  return shares(logits)
}

function lexicalShares(input: RankInput, slots: ReadonlySet<number>): Map<number, number> {
  const { lexical, named, serverOf } = input
  const scores = new Map<number, number>()
  let best = 0
  for (const slot of slots) {
    const boost =
      1 +
      (named.maybeTools.has(slot) ? MAYBE_NAMED : 0) +
      (named.maybeServers.size > 0 && named.maybeServers.has(serverOf(slot)) ? MAYBE_NAMED : 0)
    const score = (lexical.score[slot] ?? 0) * boost
    best = Math.max(best, score)
    scores.set(slot, score)
  }
  if (best > 0) for (const [slot, score] of scores) scores.set(slot, score / best)
  return scores
}

/** Those that can be among the first; sorting thousands by name for the sake of fifty would take longer than finding them. */
function front(candidates: Candidate[]): Candidate[] {
  if (candidates.length <= MAX_RANKED) return candidates
  const cut =
    Float64Array.from(candidates, ({ total }) => total)
      .sort()
      .at(-MAX_RANKED) ?? 0
  return candidates.filter(({ total, exact }) => exact || total >= cut)
}

export function rank(input: RankInput): Candidate[] {
  const { lexical, named, opinion, only, keyOf } = input
  const usage = usageShares(input)
  const slots = only ?? new Set([...lexical.touched, ...usage.keys(), ...named.tools])
  const words = lexicalShares(input, slots)
  // Past requests count by how near they are: a history about other things must not drown the words.
  const trust = usage.size === 0 ? 0 : USAGE_WEIGHT * Math.sqrt(opinion?.nearest ?? 0)
  let sum = 0
  for (const share of words.values()) sum += Math.exp((share - 1) * LEXICAL_SHARPNESS)
  const candidates: Candidate[] = []
  for (const [slot, share] of words) {
    const past = usage.get(slot) ?? 0
    const byWords = (share - 1) * LEXICAL_SHARPNESS
    const total =
      trust === 0 ? byWords : Math.log(Math.exp(byWords) / sum + LEXICAL_FLOOR) + trust * Math.log(past + USAGE_FLOOR)
    candidates.push({ slot, exact: named.tools.has(slot), total, lexical: share, usage: past })
  }
  return front(candidates).sort(
    (a, b) => Number(b.exact) - Number(a.exact) || b.total - a.total || (keyOf(a.slot) < keyOf(b.slot) ? -1 : 1)
  )
}
