/** The inputs of the confidence model, which measure how clear the first answer of a ranking is. */
import type { LexicalScores } from './lexical/lexical-scorer.ts'
import type { Meaning } from './meaning.ts'
import { nameKey } from './names/find-mentions.ts'
import type { Candidate } from './ranking.ts'

/** The names of the values, in their order. The last ones are there with embeddings only. */
export const EVIDENCE = [
  ...['bias', 'margin', 'marginToFifth', 'strength', 'coverage', 'nameCoverage', 'nearTies', 'requestLength', 'asks'],
  ...['sameServer', 'restricted', 'known', 'crowd', 'namesakes', 'corpusSize'],
  ...['usageShare', 'usageMargin', 'nearestRequest', 'agreement'],
  ...['missed', 'rareMissed', 'toolWords', 'missedWords'],
  ...['meaning', 'meaningLead', 'level', 'bestLevel', 'lead', 'leadOfFifth', 'wordsAgree']
]

const TIE = 0.9
const RIVAL = 0.6
const CROWD_SHARPNESS = 8
const MAX_LEAD = 6

export interface EvidenceInput {
  ranked: readonly Candidate[]
  lexical: LexicalScores
  meaning: Meaning
  serverOf(slot: number): string
  nameOf(slot: number): string
  /** Number of words in a tool's texts. */
  wordsOf(slot: number): number
  restricted: boolean
  /** Number of tools to choose from. */
  size: number
  /** Similarity of the nearest past request; 0 if there is none. */
  nearest: number
}

function usageEvidence(ranked: readonly Candidate[], first: Candidate, nearest: number): number[] {
  if (nearest === 0) return [0, 0, 0, 0]
  let rival = 0
  let bestLexical = first
  for (const candidate of ranked) {
    if (candidate !== first) rival = Math.max(rival, candidate.usage)
    if (candidate.lexical > bestLexical.lexical) bestLexical = candidate
  }
  const agreement = bestLexical === first ? 1 : 0
  return [first.usage * nearest, Math.max(0, first.usage - rival), nearest, agreement]
}

/** Measures what the request says and the first tool does not. That means less for a tool with few words of its own. */
function missedEvidence({ parts }: LexicalScores, slot: number, words: number): number[] {
  let [mass, missed, rarest] = [0, 0, 0]
  for (const { concept, gains } of parts) {
    // A pair of words repeats both of them.
    if (concept.isName || concept.term.includes(' ')) continue
    const gap = concept.idf - (gains.cover[gains.slots.indexOf(slot)] ?? 0)
    mass += concept.idf * concept.weight
    missed += gap * concept.weight
    rarest = Math.max(rarest, gap * Math.min(1, concept.weight))
  }
  const share = mass > 0 ? missed / mass : 1
  const ownWords = Math.log1p(words) / 4
  return [share, rarest / 8, ownWords, ownWords * share]
}

/** Empty without embeddings: there is a model of its own for that. */
function meaningEvidence({ ranked, meaning }: EvidenceInput, first: Candidate): number[] {
  if (meaning.deviation.size === 0) return []
  let rival = 0
  let bestLevel = 0
  let bestLexical = first
  for (const candidate of ranked) {
    if (candidate !== first) rival = Math.max(rival, candidate.meaning)
    if (candidate.lexical > bestLexical.lexical) bestLexical = candidate
    bestLevel = Math.max(bestLevel, meaning.level.get(candidate.slot) ?? 0)
  }
  const lead = (other: Candidate | undefined) => Math.min(MAX_LEAD, first.total - (other?.total ?? 0)) / MAX_LEAD
  return [
    first.meaning / 3,
    (first.meaning - rival) / 2,
    meaning.level.get(first.slot) ?? 0,
    bestLevel,
    lead(ranked[1]),
    lead(ranked[4]),
    bestLexical === first ? 1 : 0
  ]
}

/** How many tools share the top, each weighted by how close it is. */
function crowdOf(ranked: readonly Candidate[], first: Candidate): number {
  const sum = ranked.reduce((total, { lexical }) => total + Math.exp(CROWD_SHARPNESS * (lexical - first.lexical)), 0)
  return Math.log(sum)
}

export function evidenceOf(input: EvidenceInput): number[] {
  const { ranked, lexical, serverOf, nearest } = input
  const [first, second] = ranked
  if (!first) return []
  const fifth = ranked[4]?.lexical ?? 0
  // The first fifty are enough: ties are at the top.
  const ties = ranked.slice(1, 50).filter(({ lexical: share }) => share >= TIE * first.lexical).length
  const server = serverOf(first.slot)
  const name = nameKey(input.nameOf(first.slot))
  // The same tool on another server, or a variant of it: either may be meant.
  const namesakes = ranked
    .slice(1, 20)
    .filter(({ slot, lexical: share }) => share >= RIVAL * first.lexical && nameKey(input.nameOf(slot)) === name).length
  const rivals = ranked.slice(1, 4)
  const same = rivals.filter(({ slot }) => serverOf(slot) === server).length
  return [
    1,
    first.lexical - (second?.lexical ?? 0),
    first.lexical - fifth,
    lexical.mass > 0 ? Math.min(2, (lexical.score[first.slot] ?? 0) / lexical.mass) : 0,
    lexical.coverage[first.slot] ?? 0,
    lexical.nameCoverage[first.slot] ?? 0,
    Math.log1p(ties),
    Math.log1p(lexical.concepts),
    Math.log(lexical.asks),
    rivals.length > 0 ? same / rivals.length : 1,
    input.restricted ? 1 : 0,
    lexical.known,
    crowdOf(ranked, first),
    Math.log1p(namesakes),
    Math.log(1 + input.size) / 8,
    ...usageEvidence(ranked, first, nearest),
    ...missedEvidence(lexical, first.slot, input.wordsOf(first.slot)),
    ...meaningEvidence(input, first)
  ]
}
