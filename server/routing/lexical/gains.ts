/** Scores the words of a request for each tool that has them: BM25 over weighted fields. */
import type { Concept } from './concepts.ts'
import { countInField, FIELDS, type LexicalIndex } from './lexical-index.ts'
import type { Posting } from './postings.ts'

const K1 = 0.75
/** In the order of FIELDS: name, server, description, params, hints. */
const FIELD_WEIGHTS = [1.5, 1.3, 1, 0.45, 1.2]
const FIELD_B = [0.4, 0.25, 0.55, 0.65, 0.7]

/** Parallel lists: for each tool with the word or a related one, its score for a weight of 1. */
export interface Gains {
  slots: number[]
  score: number[]
  cover: number[]
  name: number[]
  /** Parallel lists: for each server, the best score of its tools. */
  servers: number[]
  serverScore: number[]
}

export type GainsOf = (concept: Concept) => Gains

function weightedCount(packed: number, lengths: readonly number[], averages: readonly number[]): number {
  let sum = 0
  for (let field = 0; field < FIELDS.length; field += 1) {
    const count = countInField(packed, field)
    if (count === 0) continue
    const b = FIELD_B[field] ?? 0
    sum += ((FIELD_WEIGHTS[field] ?? 0) * count) / (1 - b + (b * (lengths[field] ?? 0)) / (averages[field] ?? 1))
  }
  return sum
}

export function createGains(index: LexicalIndex): GainsOf {
  /** Depends on the mean lengths, so it is valid until the index changes. */
  const saturations = new Map<string, Float64Array>()
  let version = -1
  /** 1 + position in the lists of the current concept. */
  let places = new Int32Array(0)
  let bestOf = new Float64Array(0)

  function addServers(found: Gains): void {
    for (let at = 0; at < found.slots.length; at += 1) {
      const server = index.tools[found.slots[at] ?? 0]?.serverId ?? 0
      const best = bestOf[server] ?? 0
      const score = found.score[at] ?? 0
      if (best === 0) found.servers.push(server)
      if (score > best) bestOf[server] = score
    }
    for (const server of found.servers) {
      found.serverScore.push(bestOf[server] ?? 0)
      bestOf[server] = 0
    }
  }

  function saturation(term: string, posting: Posting): Float64Array {
    const known = saturations.get(term)
    if (known) return known
    const averages = index.averages()
    const found = Float64Array.from(posting.slots, (slot, at) => {
      const count = weightedCount(posting.counts[at] ?? 0, index.tools[slot]?.lengths ?? [], averages)
      return (count * (K1 + 1)) / (K1 + count)
    })
    saturations.set(term, found)
    return found
  }

  return (concept) => {
    if (version !== index.version) {
      saturations.clear()
      places = new Int32Array(index.tools.length)
      bestOf = new Float64Array(index.servers)
      version = index.version
    }
    const found: Gains = { slots: [], score: [], cover: [], name: [], servers: [], serverScore: [] }
    for (const variant of concept.variants) {
      const posting = index.posting(variant.term)
      if (!posting) continue
      const ownIdf = index.idf(variant.term)
      const rarity = Math.min(ownIdf, concept.idf) * variant.weight
      const saturated = saturation(variant.term, posting)
      for (let at = 0; at < posting.slots.length; at += 1) {
        const slot = posting.slots[at] ?? 0
        const score = rarity * (saturated[at] ?? 0)
        const name = countInField(posting.counts[at] ?? 0, 0) > 0 ? ownIdf * variant.weight : 0
        const place = (places[slot] ?? 0) - 1
        if (place < 0) {
          places[slot] = found.slots.push(slot)
          found.score.push(score)
          found.cover.push(rarity)
          found.name.push(name)
          continue
        }
        // Only the best of a word and its related words counts; otherwise a thesaurus would outweigh the words themselves.
        found.score[place] = Math.max(found.score[place] ?? 0, score)
        found.cover[place] = Math.max(found.cover[place] ?? 0, rarity)
        found.name[place] = Math.max(found.name[place] ?? 0, name)
      }
    }
    for (const slot of found.slots) places[slot] = 0
    addServers(found)
    return found
  }
}
