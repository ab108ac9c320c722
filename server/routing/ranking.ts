/** Combines what words, names and past requests say about each tool. */
import type { LexicalScores } from './lexical/lexical-scorer.ts'
import type { Named } from './names/name-index.ts'
import type { UsageOpinion } from './usage/usage-memory.ts'

const MAYBE_NAMED = 0.2
/** It takes a value of a kind that the request contains. */
const TAKES_VALUE = 0.15
const LEXICAL_SHARPNESS = 6
/** Words count less if there are past requests, and not at all if one is nearly equal. */
const LEXICAL_BESIDE_USAGE = 3
const VOTES_WEIGHT = 1.2
const NO_VOTES = 0.01
const PULL_WEIGHT = 7
/** Per standard deviation; for comparison, the best tool's word match counts six. */
const MEANING_WEIGHT = 2
/** More than any caller may request. Equal candidates at the end are all kept, or all left out. */
const MAX_RANKED = 60

export interface Candidate {
  slot: number
  /** The request names this tool: it comes before all tools that are not named. */
  exact: boolean
  /** Log-odds up to a constant; comparable only within one request. */
  total: number
  /** Lexical score relative to the best one, 0 to 1. */
  lexical: number
  /** Score from past requests, 0 to 1. */
  usage: number
  /** By how many standard deviations its similarity in meaning stands out; 0 without embeddings. */
  meaning: number
}

export interface RankInput {
  /** If set, only these tools are candidates. */
  only: ReadonlySet<number> | undefined
  serverOf(slot: number): string
  /** Breaks ties, so that the result never depends on the order of arrival. */
  keyOf(slot: number): string
  slotOf(key: string): number | undefined
  lexical: LexicalScores
  named: Named
  /** Tools that take a value of a kind that the request contains. */
  takers: ReadonlySet<number>
  opinion: UsageOpinion | undefined
  /** By how much each tool's similarity stands out, by slot; empty without embeddings. */
  meaning: ReadonlyMap<number, number>
}

function shares(logits: Map<number, number>): Map<number, number> {
  let top = Number.NEGATIVE_INFINITY
  for (const logit of logits.values()) top = Math.max(top, logit)
  let sum = 0
  for (const logit of logits.values()) sum += Math.exp(logit - top)
  return new Map([...logits].map(([slot, logit]) => [slot, Math.exp(logit - top) / sum]))
}

function usageLogits({ opinion, only, slotOf }: RankInput): Map<number, number> {
  const logits = new Map<number, number>()
  const trust = VOTES_WEIGHT * (opinion?.nearest ?? 0)
  for (const [key, { votes, pull }] of opinion?.byTool ?? []) {
    const slot = slotOf(key)
    // A tool that is gone or excluded must not keep a share of the votes.
    if (slot === undefined || (only && !only.has(slot))) continue
    logits.set(slot, trust * Math.log((votes + NO_VOTES) / NO_VOTES) + PULL_WEIGHT * pull)
  }
  return logits
}

function lexicalShares(input: RankInput, slots: ReadonlySet<number>): Map<number, number> {
  const { lexical, named, takers, serverOf } = input
  const scores = new Map<number, number>()
  let best = 0
  for (const slot of slots) {
    const boost =
      1 +
      (takers.has(slot) ? TAKES_VALUE : 0) +
      (named.maybeTools.has(slot) ? MAYBE_NAMED : 0) +
      (named.maybeServers.size > 0 && named.maybeServers.has(serverOf(slot)) ? MAYBE_NAMED : 0)
    const score = (lexical.score[slot] ?? 0) * boost
    best = Math.max(best, score)
    scores.set(slot, score)
  }
  if (best > 0) for (const [slot, score] of scores) scores.set(slot, score / best)
  return scores
}

/** The candidates that can be among the first: sorting thousands of them by name would take longer than finding them. */
function front(candidates: Candidate[]): Candidate[] {
  if (candidates.length <= MAX_RANKED) return candidates
  const cut =
    Float64Array.from(candidates, ({ total }) => total)
      .sort()
      .at(-MAX_RANKED) ?? 0
  return candidates.filter(({ total, exact }) => exact || total >= cut)
}

export function rank(input: RankInput): Candidate[] {
  const { lexical, named, opinion, only, keyOf, meaning } = input
  const logits = usageLogits(input)
  const usage = shares(logits)
  const slots = only ?? new Set([...lexical.touched, ...logits.keys(), ...meaning.keys(), ...named.tools])
  const words = lexicalShares(input, slots)
  const sharpness = logits.size === 0 ? LEXICAL_SHARPNESS : LEXICAL_BESIDE_USAGE * (1 - (opinion?.nearest ?? 0))
  const candidates: Candidate[] = []
  for (const [slot, share] of words) {
    const near = meaning.get(slot) ?? 0
    const total = share * sharpness + (logits.get(slot) ?? 0) + MEANING_WEIGHT * near
    const past = usage.get(slot) ?? 0
    candidates.push({ slot, exact: named.tools.has(slot), total, lexical: share, usage: past, meaning: near })
  }
  return front(candidates).sort(
    (a, b) => Number(b.exact) - Number(a.exact) || b.total - a.total || (keyOf(a.slot) < keyOf(b.slot) ? -1 : 1)
  )
}
