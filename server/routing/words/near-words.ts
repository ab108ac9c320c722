/** Finds words in the index that look like a given one: typing errors, compounds, cognates from other languages. */
import { put, take } from './set-map.ts'

const MIN_LENGTH = 4
const MAX_NEAR = 4

interface NearWord {
  term: string
  /** 0 to 1: the share of character trigrams that both words have (Dice). */
  similarity: number
}

/** Pairs of words are in the vocabulary too, but have no similar words. */
function isWord(term: string): boolean {
  return term.length >= MIN_LENGTH && !term.includes(' ')
}

function trigrams(term: string): string[] {
  const padded = `^${term}$`
  const found = new Set<string>()
  for (let at = 0; at + 3 <= padded.length; at += 1) found.add(padded.slice(at, at + 3))
  return [...found]
}

function bySimilarity(a: NearWord, b: NearWord): number {
  return b.similarity - a.similarity || (a.term < b.term ? -1 : 1)
}

export type NearWords = ReturnType<typeof createNearWords>

export function createNearWords() {
  const byGram = new Map<string, Set<string>>()
  return {
    add(term: string): void {
      if (isWord(term)) for (const gram of trigrams(term)) put(byGram, gram, term)
    },
    remove(term: string): void {
      if (isWord(term)) for (const gram of trigrams(term)) take(byGram, gram, term)
    },
    near(term: string, minSimilarity: number): NearWord[] {
      if (!isWord(term)) return []
      const grams = trigrams(term)
      const shared = new Map<string, number>()
      for (const gram of grams) {
        for (const other of byGram.get(gram) ?? []) shared.set(other, (shared.get(other) ?? 0) + 1)
      }
      const found: NearWord[] = []
      for (const [other, count] of shared) {
        // A padded word has as many trigrams as letters, apart from repetitions.
        const similarity = Math.min(1, (2 * count) / (grams.length + other.length))
        if (other !== term && similarity >= minSimilarity) found.push({ term: other, similarity })
      }
      return found.sort(bySimilarity).slice(0, MAX_NEAR)
    }
  }
}
