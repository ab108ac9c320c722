/** Compares a request with past ones: votes of the most similar ones, and a linear model over their words. */
import type { UsageExample } from '../port.ts'
import { inSlices, pullsOn, training } from './usage-model.ts'
import {
  createUsageStore,
  type Feature,
  featureTexts,
  normOf,
  rarity,
  type UsageStore,
  type UsedTool
} from './usage-store.ts'

const SHORTLIST = 120
const BINS = 512
const NEIGHBOURS = 30
/** Words in this many past requests, and in this share of them, don't distinguish neighbours but cost most of the time. */
const MANY = 100
const COMMON = 0.1
/** This many uses of a tool count half. */
const FEW = 2
/** From this many uses of a tool on, its past requests count in full beside the words. */
const ENOUGH = 3
/** One use may be a mistake, but the same words again are likely to mean the same. What runs is decided without past choices. */
const ONLY_ONE = 0.1
const SAME_WORDS_ONCE = 0.25
/** It stops no sentence that is sure without it. */
const RECALLED_ONCE = 0.79
const SAME_WORDS = 0.9
/** The linear model is trained again when this share of the examples is new. */
const NEW_SHARE = 0.1
/** Takes a few milliseconds; calls are served in between. */
export const SLICE_OPERATIONS = 100_000

export interface UsageEvidence {
  /** Share of the neighbours' votes, 0 to 1. */
  votes: number
  /** Score of the linear model, in units of its margin. */
  pull: number
}

export interface UsageOpinion {
  byTool: Map<string, UsageEvidence>
  /** Similarity of the nearest past request, 0 to 1: how much weight all this deserves. */
  nearest: number
  /** How often its tool was used, 0 to 1: a single past request must not outweigh the words. */
  support: number
  /** `nearest`, but less if its tool was used only once. */
  recalled: number
}

/** Shared weight per example, beginning with the oldest. */
function dotsWith(store: UsageStore, known: readonly Feature[]): Float64Array {
  const dots = new Float64Array(store.size)
  for (const feature of known) {
    if (feature.examples.length > MANY && feature.examples.length > COMMON * store.size) continue
    const weight = rarity(store, feature) ** 2
    for (const id of feature.examples) dots[id - store.firstId] = (dots[id - store.firstId] ?? 0) + weight
  }
  return dots
}

/** Positions of about the highest SHORTLIST values. Uses a histogram, because sorting all values would cost more than the rest. */
function shortlist(dots: Float64Array): number[] {
  const scale = BINS / dots.reduce((top, dot) => Math.max(top, dot), Number.MIN_VALUE)
  const bins = new Uint32Array(BINS + 1)
  for (const dot of dots) if (dot > 0) bins[Math.floor(dot * scale)] = (bins[Math.floor(dot * scale)] ?? 0) + 1
  let edge = BINS
  for (let sum = bins[edge] ?? 0; edge > 0 && sum < SHORTLIST; sum += bins[edge] ?? 0) edge -= 1
  const found: number[] = []
  for (let at = 0; at < dots.length; at += 1) {
    const dot = dots[at] ?? 0
    if (dot > 0 && Math.floor(dot * scale) >= edge) found.push(at)
  }
  return found
}

function vote(
  store: UsageStore,
  dots: Float64Array,
  norm: number
): Pick<UsageOpinion, 'nearest' | 'support' | 'recalled'> & { votes: Map<UsedTool, number> } {
  const near: { at: number; tool: UsedTool; similarity: number }[] = []
  for (const at of shortlist(dots)) {
    const entry = store.entry(store.firstId + at)
    if (!entry) continue
    near.push({ at, tool: entry.tool, similarity: (dots[at] ?? 0) / (normOf(store, entry) * norm) })
  }
  near.sort((a, b) => b.similarity - a.similarity || a.at - b.at)
  const voters = near.slice(0, NEIGHBOURS)
  const sum = voters.reduce((total, { similarity }) => total + similarity ** 3, 0)
  const votes = new Map<UsedTool, number>()
  for (const { tool, similarity } of voters) votes.set(tool, (votes.get(tool) ?? 0) + similarity ** 3 / sum)
  const uses = near[0]?.tool.examples ?? 0
  const nearest = Math.min(1, near[0]?.similarity ?? 0)
  if (uses !== 1) return { votes, nearest, support: Math.min(1, uses / ENOUGH), recalled: nearest }
  return {
    votes,
    nearest,
    support: nearest >= SAME_WORDS ? SAME_WORDS_ONCE : ONLY_ONE,
    recalled: RECALLED_ONCE * nearest
  }
}

/** When the next slice of training runs. */
export type Schedule = (slice: () => void) => void

/** Trains synchronously, for measurements. */
export const AT_ONCE: Schedule = (slice) => slice()

export type UsageMemory = ReturnType<typeof createUsageMemory>

export function createUsageMemory(maxExamples: number, schedule: Schedule = setImmediate) {
  const store = createUsageStore()
  let learned = 0
  let nextTraining = 1
  let running: symbol | undefined

  /** Training costs far more than an answer: it waits for enough new examples and runs in slices between the answers. */
  function train(): void {
    if (running || learned < nextTraining) return
    const own = Symbol('training')
    running = own
    nextTraining = learned + Math.max(1, store.size * NEW_SHARE)
    const next: Schedule = (slice) => schedule(() => running === own && slice())
    inSlices(training(store), SLICE_OPERATIONS, next, () => {
      running = undefined
    })
  }

  return {
    learn(example: UsageExample, key: string): void {
      if (maxExamples <= 0) return
      if (store.size >= maxExamples) store.dropOldest()
      store.add(example, key)
      learned += 1
    },
    get size() {
      return store.size
    },
    dropOldest: store.dropOldest,
    examples: store.examples,
    clear(): void {
      store.clear()
      running = undefined
      nextTraining = learned + 1
    },
    opinion(request: string): UsageOpinion | undefined {
      const texts = featureTexts(request)
      const known = texts.map((text) => store.features.get(text)).filter((feature) => feature !== undefined)
      if (known.length === 0) return undefined
      const norm = Math.sqrt(texts.reduce((sum, text) => sum + rarity(store, store.features.get(text)) ** 2, 0))
      train()
      const pulls = pullsOn(store, known, norm)
      const { votes, ...about } = vote(store, dotsWith(store, known), norm)
      const byTool = new Map<string, UsageEvidence>()
      for (const [tool, pull] of pulls) {
        const grown = tool.examples / (tool.examples + FEW)
        byTool.set(tool.key, { votes: votes.get(tool) ?? 0, pull: pull * grown })
      }
      return { byTool, ...about }
    }
  }
}
