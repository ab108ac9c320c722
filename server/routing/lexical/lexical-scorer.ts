/** Scores how well the words of each tool match a request, as a whole and by its clauses. */
import { clausesOf } from './clauses.ts'
import type { Concept, ReadConcepts } from './concepts.ts'
import { createGains, type Gains } from './gains.ts'
import type { LexicalIndex } from './lexical-index.ts'

const NAME_COVERAGE = 0.35
/** The other tools of a server add a little to a tool's score: "Search by name" of a football server. */
const SERVER = 0.15
const BEST_CLAUSE = 1.6
/** For a tool that has a word of the request, but not the compound that the word is part of there. */
const APART = 0.65
const BACKGROUND = 0.85
/** A server that matches several clauses of a request is more likely to be meant by each of them. */
const COHERENCE = 0.6

export interface LexicalScores {
  /** Slots with a score above 0. */
  touched: number[]
  score: Float64Array
  /** Share of the request's weight that the tool's words cover. */
  coverage: Float64Array
  /** Share of the tool's name that the request mentions. */
  nameCoverage: Float64Array
  /** The request's weight: the score of a tool that has all its words. */
  mass: number
  /** The part of `mass` in words that the index has, or has related words for. */
  known: number
  concepts: number
  /** Number of things that the request asks for. */
  asks: number
  /** Number of clauses of the request; 0 if it has only one. */
  clauses: number
  /** The words of the whole request, and what each of them gives the tools. */
  parts: { concept: Concept; gains: Gains }[]
}

/** `together` are the tools that have the word's compound; the others are about something else, and are not named by it. */
function addGains(
  into: LexicalScores,
  { slots, score, cover, name }: Gains,
  weight: number,
  together: ReadonlySet<number> | undefined
): void {
  for (let at = 0; at < slots.length; at += 1) {
    const slot = slots[at] ?? 0
    if (into.score[slot] === 0) into.touched.push(slot)
    const isApart = together !== undefined && !together.has(slot)
    into.score[slot] = (into.score[slot] ?? 0) + (score[at] ?? 0) * weight * (isApart ? APART : 1)
    into.coverage[slot] = (into.coverage[slot] ?? 0) + (cover[at] ?? 0) * weight
    into.nameCoverage[slot] = (into.nameCoverage[slot] ?? 0) + (isApart ? 0 : (name[at] ?? 0))
  }
}

function emptyScores(size: number, concepts: number): LexicalScores {
  return {
    touched: [],
    score: new Float64Array(size),
    coverage: new Float64Array(size),
    nameCoverage: new Float64Array(size),
    mass: 0,
    known: 0,
    concepts,
    asks: 1,
    clauses: 0,
    parts: []
  }
}

export function createLexicalScorer(index: LexicalIndex, readConcepts: ReadConcepts) {
  const gainsOf = createGains(index)
  function scoreConcepts(concepts: readonly Concept[], gainsFor: Map<string, Gains>): LexicalScores {
    const scores = emptyScores(index.tools.length, concepts.length)
    const servers = new Float64Array(index.servers)
    let known = 0
    for (const concept of concepts) {
      scores.mass += concept.weight * concept.idf
      const gains = gainsFor.get(concept.term) ?? gainsOf(concept)
      gainsFor.set(concept.term, gains)
      scores.parts.push({ concept, gains })
      const { compound } = concept
      const together = compound === undefined ? undefined : new Set(index.posting(compound)?.slots)
      addGains(scores, gains, concept.weight, together)
      gains.servers.forEach((server, at) => {
        servers[server] = (servers[server] ?? 0) + (gains.serverScore[at] ?? 0) * concept.weight
      })
      if (concept.variants.length > 0) known += concept.weight * concept.idf
    }
    scores.known = scores.mass > 0 ? known / scores.mass : 0
    for (const slot of scores.touched) {
      scores.coverage[slot] = (scores.coverage[slot] ?? 0) / scores.mass
      const share = Math.min(1, (scores.nameCoverage[slot] ?? 0) / Math.max(index.nameMass(slot), Number.MIN_VALUE))
      scores.nameCoverage[slot] = share
      const ofServer = servers[index.tools[slot]?.serverId ?? 0] ?? 0
      scores.score[slot] = (scores.score[slot] ?? 0) * (1 + NAME_COVERAGE * share) + SERVER * ofServer
    }
    return scores
  }

  return (request: string): LexicalScores => {
    const clauses = clausesOf(request)
    const known = new Map<string, Gains>()
    const whole = scoreConcepts(readConcepts(request, clauses), known)
    if (clauses.length === 0) return whole
    whole.clauses = clauses.length
    whole.asks = Math.max(1, clauses.filter(({ asks }) => asks).length)
    const best = new Float64Array(index.tools.length)
    const servers = new Map<string, number>()
    for (const clause of clauses) {
      const part = scoreConcepts(readConcepts(clause.text), known)
      const weight = clause.asks ? 1 : BACKGROUND
      const here = new Map<string, number>()
      for (const slot of part.touched) {
        const own = (part.score[slot] ?? 0) * weight
        best[slot] = Math.max(best[slot] ?? 0, own)
        const server = index.tools[slot]?.server ?? ''
        if (own > (here.get(server) ?? 0)) here.set(server, own)
      }
      for (const [server, own] of here) servers.set(server, (servers.get(server) ?? 0) + own)
    }
    for (const slot of whole.touched) {
      const ofServer = servers.get(index.tools[slot]?.server ?? '') ?? 0
      const sum = (whole.score[slot] ?? 0) + BEST_CLAUSE * (best[slot] ?? 0) + COHERENCE * ofServer
      // Makes long and short requests comparable.
      whole.score[slot] = sum / (1 + BEST_CLAUSE + COHERENCE)
    }
    return whole
  }
}
