/** What past requests say about a new one: votes of the most similar ones, and a linear model over their words. */
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
/** Words that so many past requests have, and such a share of them, tell no neighbour from another, but cost most of the time. */
const MANY = 100
const COMMON = 0.1
/** So many uses of a tool are half believed: one past request must not outweigh the words. */
const FEW = 2
/** The linear model is trained again when this share of the examples is new. */
const NEW_SHARE = 0.1
/** A few milliseconds: calls come in between. */
export const SLICE_OPERATIONS = 100_000

export interface UsageEvidence {
  /** Share of the neighbours' votes, 0 to 1. */
  votes: number
  /** Of the linear model, in units of its margin. */
  pull: number
}

export interface UsageOpinion {
  byTool: Map<string, UsageEvidence>
  /** Likeness of the nearest past request, 0 to 1: how much all this is worth. */
  nearest: number
}

export interface UsageMemory {
  learn(example: UsageExample, key: string): void
  examples(): readonly UsageExample[]
  clear(): void
  opinion(request: string): UsageOpinion | undefined
}

/** Shared weight by example, counted from the oldest. */
function dotsWith(store: UsageStore, known: readonly Feature[]): Float64Array {
  const dots = new Float64Array(store.size)
  for (const feature of known) {
    if (feature.examples.length > MANY && feature.examples.length > COMMON * store.size) continue
    const weight = rarity(store, feature) ** 2
    for (const id of feature.examples) dots[id - store.firstId] = (dots[id - store.firstId] ?? 0) + weight
  }
  return dots
}

/** Positions of about the highest SHORTLIST values: by a histogram, for sorting all of them would cost more than the rest. */
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

function vote(store: UsageStore, dots: Float64Array, norm: number): { votes: Map<UsedTool, number>; nearest: number } {
  const near: { at: number; tool: UsedTool; likeness: number }[] = []
  for (const at of shortlist(dots)) {
    const entry = store.entry(store.firstId + at)
    if (!entry) continue
    near.push({ at, tool: entry.tool, likeness: (dots[at] ?? 0) / (normOf(store, entry) * norm) })
  }
  near.sort((a, b) => b.likeness - a.likeness || a.at - b.at)
  const voters = near.slice(0, NEIGHBOURS)
  const sum = voters.reduce((total, { likeness }) => total + likeness ** 3, 0)
  const votes = new Map<UsedTool, number>()
  for (const { tool, likeness } of voters) votes.set(tool, (votes.get(tool) ?? 0) + likeness ** 3 / sum)
  return { votes, nearest: Math.min(1, near[0]?.likeness ?? 0) }
}

/** When the next slice of training runs. */
export type Schedule = (slice: () => void) => void

/** For whoever wants to measure what is known, not when. */
export const AT_ONCE: Schedule = (slice) => slice()

export function createUsageMemory(maxExamples: number, schedule: Schedule = setImmediate): UsageMemory {
  const store = createUsageStore()
  let learned = 0
  let nextTraining = 1
  let running: symbol | undefined

  /** Costs far more than an answer: it waits until there is enough that is new, and goes on in slices beside the answers. */
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
    learn(example, key) {
      if (maxExamples <= 0) return
      if (store.size >= maxExamples) store.dropOldest()
      store.add(example, key)
      learned += 1
    },
    examples: store.examples,
    clear() {
      store.clear()
      running = undefined
      nextTraining = learned + 1
    },
    opinion(request) {
      const asked = featureTexts(request)
      const known = asked.map((text) => store.features.get(text)).filter((feature) => feature !== undefined)
      if (known.length === 0) return undefined
      const norm = Math.sqrt(asked.reduce((sum, text) => sum + rarity(store, store.features.get(text)) ** 2, 0))
      train()
      const pulls = pullsOn(store, known, norm)
      const { votes, nearest } = vote(store, dotsWith(store, known), norm)
      const byTool = new Map<string, UsageEvidence>()
      for (const [tool, pull] of pulls) {
        const grown = tool.examples / (tool.examples + FEW)
        byTool.set(tool.key, { votes: votes.get(tool) ?? 0, pull: pull * grown })
      }
      return { byTool, nearest }
    }
  }
}
