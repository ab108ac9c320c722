/** Words of the catalogue that look like a given one: typing errors, compounds, cognates from other languages. */

const MIN_LENGTH = 4
const MAX_NEAR = 4

interface NearWord {
  term: string
  /** 0 to 1: the share of character trigrams that both have (Dice). */
  likeness: number
}

/** Pairs of words are in the vocabulary too, but have no look-alikes. */
function isWord(term: string): boolean {
  return term.length >= MIN_LENGTH && !term.includes(' ')
}

function trigrams(term: string): string[] {
  const padded = `^${term}$`
  const found = new Set<string>()
  for (let at = 0; at + 3 <= padded.length; at += 1) found.add(padded.slice(at, at + 3))
  return [...found]
}

export interface NearWords {
  add(term: string): void
  remove(term: string): void
  near(term: string, minLikeness: number): NearWord[]
}

function byLikeness(a: NearWord, b: NearWord): number {
  return b.likeness - a.likeness || (a.term < b.term ? -1 : 1)
}

export function createNearWords(): NearWords {
  const byGram = new Map<string, Set<string>>()
  return {
    add(term) {
      if (!isWord(term)) return
      for (const gram of trigrams(term)) {
        const known = byGram.get(gram)
        if (known) known.add(term)
        else byGram.set(gram, new Set([term]))
      }
    },
    remove(term) {
      if (!isWord(term)) return
      for (const gram of trigrams(term)) {
        const known = byGram.get(gram)
        known?.delete(term)
        if (known?.size === 0) byGram.delete(gram)
      }
    },
    near(term, minLikeness) {
      if (!isWord(term)) return []
      const grams = trigrams(term)
      const shared = new Map<string, number>()
      for (const gram of grams) {
        for (const other of byGram.get(gram) ?? []) shared.set(other, (shared.get(other) ?? 0) + 1)
      }
      const found: NearWord[] = []
      for (const [other, count] of shared) {
        // Trigrams of a padded word are as many as its letters, repetitions aside.
        const likeness = Math.min(1, (2 * count) / (grams.length + other.length))
        if (other !== term && likeness >= minLikeness) found.push({ term: other, likeness })
      }
      return found.sort(byLikeness).slice(0, MAX_NEAR)
    }
  }
}
