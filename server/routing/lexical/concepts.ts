/** The words of a request, each with its related and similar words in the index. */

import type { NearWords } from '../words/near-words.ts'
import { WEAK_WORDS } from '../words/stop-words.ts'
import { relatedTerms, rephrase } from '../words/synonyms.ts'
import { compoundsOf, pairsOf, termOf, terms } from '../words/words.ts'
import type { Clause } from './clauses.ts'
import type { LexicalIndex } from './lexical-index.ts'

const WEAK = 0.75
const BACKGROUND = 0.85
const NEAR_UNKNOWN = 0.6
const NEAR_KNOWN = 0.3
const MIN_LIKENESS_KNOWN = 0.6
const MIN_LIKENESS_UNKNOWN = 0.5
/** Bonus for two words in the same order as in the tool's text. */
const PAIR = 0.2
const MAX_TERMS = 200
const MAX_REMEMBERED = 2000

/** A capital letter that does not begin the sentence. */
const NAME = /(?<=[\p{L}\p{N}],?\s)\p{Lu}[\p{L}\p{M}'\u2019-]+/gu

const WEAK_TERMS = new Set([...WEAK_WORDS].map(termOf))

interface Variant {
  term: string
  weight: number
}

export interface Concept {
  term: string
  weight: number
  /** Rarity of the word itself; its variants never count for more. */
  idf: number
  variants: Variant[]
  /** The word only specifies the next one, and the index knows both together: "knowledge" in "knowledge graph". */
  compound?: string | undefined
  /** Written like the name of a city or a person, and in no tool: a value, which no tool needs to know. */
  isName?: boolean
}

function requestTerms(text: string): string[] {
  return terms(rephrase(text), 'prose', MAX_TERMS)
}

export type ReadConcepts = ReturnType<typeof createConceptReader>

export function createConceptReader(index: LexicalIndex, nearWords: NearWords) {
  function variantsOf(term: string): Variant[] {
    const known = index.has(term)
    const variants: Variant[] = known ? [{ term, weight: 1 }] : []
    for (const related of relatedTerms(term)) if (index.has(related.term)) variants.push(related)
    const scale = known ? NEAR_KNOWN : NEAR_UNKNOWN
    for (const near of nearWords.near(term, known ? MIN_LIKENESS_KNOWN : MIN_LIKENESS_UNKNOWN)) {
      variants.push({ term: near.term, weight: near.similarity * scale })
    }
    return variants
  }

  /** A cache, because clauses repeat the words of the whole. Cleared with every change of the index. */
  const memory = new Map<string, Variant[]>()
  let version = -1
  function remembered(term: string): Variant[] {
    if (version !== index.version || memory.size > MAX_REMEMBERED) memory.clear()
    version = index.version
    const variants = memory.get(term) ?? variantsOf(term)
    memory.set(term, variants)
    return variants
  }

  /** How often each word occurs. Two words that the index writes as one ("time zone") also count as that one. */
  function countTerms(found: string[]): Map<string, number> {
    const counts = new Map<string, number>()
    const count = (term: string) => counts.set(term, (counts.get(term) ?? 0) + 1)
    found.forEach((term, at) => {
      count(term)
      const joined = termOf(term + (found[at + 1] ?? ''))
      if (joined !== term && index.has(joined)) count(joined)
    })
    return counts
  }

  return (text: string, clauses: readonly Clause[] = []): Concept[] => {
    const found = requestTerms(text)
    const askedTerms = new Set(clauses.filter(({ asks }) => asks).flatMap((clause) => requestTerms(clause.text)))
    const concepts: Concept[] = []
    const compounds = new Map(
      compoundsOf(rephrase(text), MAX_TERMS).flatMap(([first, second]) => {
        const pair = `${first} ${second}`
        return index.has(pair) ? [[first, pair]] : []
      })
    )
    for (const pair of pairsOf(found)) {
      // In "search the knowledge graph", nobody searches knowledge.
      const second = pair.slice(pair.indexOf(' ') + 1)
      const isBroken = compounds.has(second) && !compounds.has(pair.slice(0, pair.indexOf(' ')))
      if (index.has(pair) && !isBroken)
        concepts.push({ term: pair, weight: PAIR, idf: index.idf(pair), variants: [{ term: pair, weight: 1 }] })
    }
    const names = new Set([...text.matchAll(NAME)].flatMap(([name]) => requestTerms(name)))
    for (const [term, count] of countTerms(found)) {
      const background = askedTerms.size > 0 && !askedTerms.has(term) ? BACKGROUND : 1
      const weight = (WEAK_TERMS.has(term) ? WEAK : 1) * (1 + Math.log(count)) * background
      concepts.push({
        term,
        weight,
        idf: index.idf(term),
        variants: remembered(term),
        isName: names.has(term) && !index.has(term),
        compound: count === 1 ? compounds.get(term) : undefined
      })
    }
    return concepts
  }
}
