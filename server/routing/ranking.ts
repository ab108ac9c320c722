/** Combines what words, names and past requests say about each tool. */
import type { LexicalScores } from './lexical/lexical-scorer.ts'
import { type Meaning, STANDS_OUT } from './meaning.ts'
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
/**
 * With embeddings: how much words and meaning (per standard deviation) count, in a request of one clause and of many. Fitted on the
 * tuning halves of public data sets (`bench/routing-data.ts`).
 */
const ONE_CLAUSE = { share: 0.7, strength: 1.1, coverage: 5, name: 0.8, meaning: 1.3 }
const MANY_CLAUSES = { share: 6, strength: 0, coverage: 4, name: 0, meaning: 1 }
const MANY = 4
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
  /** By how many standard deviations its similarity in meaning is above the mean; 0 without embeddings. */
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
  /** Empty without embeddings. */
  meaning: Meaning
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
  const support = opinion?.support ?? 0
  for (const [key, { votes, pull }] of opinion?.byTool ?? []) {
    const slot = slotOf(key)
    // A tool that is gone or excluded must not keep a share of the votes.
    if (slot === undefined || (only && !only.has(slot))) continue
    logits.set(slot, support * (trust * Math.log((votes + NO_VOTES) / NO_VOTES) + PULL_WEIGHT * pull))
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

function weightsBeside(clauses: number): typeof ONE_CLAUSE {
  const many = Math.min(1, Math.max(0, clauses - 1) / (MANY - 1))
  const between = (name: keyof typeof ONE_CLAUSE) => (1 - many) * ONE_CLAUSE[name] + many * MANY_CLAUSES[name]
  return {
    share: between('share'),
    strength: between('strength'),
    coverage: between('coverage'),
    name: between('name'),
    meaning: between('meaning')
  }
}

/** The score that the words give a tool, on the scale of `total`. */
function wordsBeside(weights: typeof ONE_CLAUSE, lexical: LexicalScores, slot: number, share: number): number {
  const strength = lexical.mass > 0 ? (lexical.score[slot] ?? 0) / lexical.mass : 0
  return (
    weights.share * share +
    weights.strength * strength +
    weights.coverage * (lexical.coverage[slot] ?? 0) +
    weights.name * (lexical.nameCoverage[slot] ?? 0)
  )
}

export function rank(input: RankInput): Candidate[] {
  const { lexical, named, opinion, only, keyOf, meaning } = input
  const logits = usageLogits(input)
  const usage = shares(logits)
  const near = [...meaning.deviation].flatMap(([slot, by]) => (by >= STANDS_OUT ? [slot] : []))
  const slots = only ?? new Set([...lexical.touched, ...logits.keys(), ...near, ...named.tools])
  const words = lexicalShares(input, slots)
  const hasMeaning = meaning.deviation.size > 0
  // Past requests replace what words and meaning say, the more the nearer they are and the more there are.
  const support = logits.size === 0 ? 0 : (opinion?.support ?? 0)
  const doubt = 1 - support * (opinion?.nearest ?? 0)
  const beside = (1 - (opinion?.nearest ?? 0)) * LEXICAL_BESIDE_USAGE
  const sharpness = (1 - support) * LEXICAL_SHARPNESS + support * beside
  const weights = weightsBeside(lexical.clauses)
  const candidates: Candidate[] = []
  for (const [slot, share] of words) {
    const by = meaning.deviation.get(slot) ?? 0
    const said = hasMeaning
      ? (sharpness / LEXICAL_SHARPNESS) * wordsBeside(weights, lexical, slot, share) + weights.meaning * doubt ** 2 * by
      : sharpness * share
    const total = said + (logits.get(slot) ?? 0)
    const past = usage.get(slot) ?? 0
    candidates.push({ slot, exact: named.tools.has(slot), total, lexical: share, usage: past, meaning: by })
  }
  return front(candidates).sort(
    (a, b) => Number(b.exact) - Number(a.exact) || b.total - a.total || (keyOf(a.slot) < keyOf(b.slot) ? -1 : 1)
  )
}
