/** What past requests say about a new one: votes of the most similar ones, and a naive Bayes model over their words. */
import type { UsageExample } from './port.ts'
import { createUsageStore, type Feature, featureTexts, type UsageStore, type UsedTool } from './usage-store.ts'

const SHORTLIST = 120
const BINS = 512
const NEIGHBOURS = 30
/** Small on purpose: a word that a tool was never asked with counts strongly against it. */
const SMOOTHING = 0.01

export interface UsageEvidence {
  /** Share of the neighbours' votes, 0 to 1. */
  votes: number
  /** Log-likelihood of the request under the tool's past requests, up to a constant. */
  model: number
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

interface Tally {
  /** Shared weight by example, counted from the oldest. */
  dots: Float64Array
  gains: Map<UsedTool, number>
  mass: number
}

function rarity(store: UsageStore, feature: Feature | undefined): number {
  return Math.log(1 + store.size / (feature?.examples.length ?? 0.5))
}

function tally(store: UsageStore, known: readonly Feature[]): Tally {
  const dots = new Float64Array(store.size)
  const gains = new Map<UsedTool, number>()
  let mass = 0
  for (const feature of known) {
    const rare = rarity(store, feature)
    const weight = Math.min(1.5, Math.sqrt(rare / 6))
    const times: UsedTool[] = []
    mass += weight
    for (const id of feature.examples) {
      const at = id - store.firstId
      dots[at] = (dots[at] ?? 0) + rare * rare
      const tool = store.entry(id)?.tool
      if (tool && tool.tally++ === 0) times.push(tool)
    }
    for (const tool of times) {
      gains.set(tool, (gains.get(tool) ?? 0) + weight * Math.log(1 + tool.tally / SMOOTHING))
      tool.tally = 0
    }
  }
  return { dots, gains, mass }
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
    const own = Math.sqrt(entry.features.reduce((sum, feature) => sum + rarity(store, feature) ** 2, 0))
    near.push({ at, tool: entry.tool, likeness: (dots[at] ?? 0) / (own * norm) })
  }
  near.sort((a, b) => b.likeness - a.likeness || a.at - b.at)
  const voters = near.slice(0, NEIGHBOURS)
  const sum = voters.reduce((total, { likeness }) => total + likeness ** 3, 0)
  const votes = new Map<UsedTool, number>()
  for (const { tool, likeness } of voters) votes.set(tool, (votes.get(tool) ?? 0) + likeness ** 3 / sum)
  return { votes, nearest: Math.min(1, near[0]?.likeness ?? 0) }
}

export function createUsageMemory(maxExamples: number): UsageMemory {
  const store = createUsageStore()
  return {
    learn(example, key) {
      if (maxExamples <= 0) return
      if (store.size >= maxExamples) store.dropOldest()
      store.add(example, key)
    },
    examples: store.examples,
    clear: store.clear,
    opinion(request) {
      const asked = featureTexts(request)
      const known = asked.map((text) => store.features.get(text)).filter((feature) => feature !== undefined)
      if (known.length === 0) return undefined
      const norm = Math.sqrt(asked.reduce((sum, text) => sum + rarity(store, store.features.get(text)) ** 2, 0))
      const { dots, gains, mass } = tally(store, known)
      const { votes, nearest } = vote(store, dots, norm)
      const byTool = new Map<string, UsageEvidence>()
      for (const [tool, gain] of gains) {
        const size = Math.log(tool.features + SMOOTHING * store.features.size)
        const model = gain - mass * size + 0.5 * Math.log(tool.examples)
        byTool.set(tool.key, { votes: votes.get(tool) ?? 0, model })
      }
      return { byTool, nearest }
    }
  }
}
