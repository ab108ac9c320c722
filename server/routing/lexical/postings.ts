/** Maps each term to the tools that have it, with the fields. A term without tools is removed. */

export interface Posting {
  slots: number[]
  /** Occurrences per field, packed by the index. */
  counts: number[]
}

/** Observer of added and removed terms. */
export interface Vocabulary {
  add(term: string): void
  remove(term: string): void
}

export function createPostings(vocabulary: Vocabulary) {
  const postings = new Map<string, Posting>()
  return {
    get: (term: string): Posting | undefined => postings.get(term),
    post(term: string, slot: number, counts: number): void {
      const posting = postings.get(term)
      if (posting) {
        posting.slots.push(slot)
        posting.counts.push(counts)
        return
      }
      postings.set(term, { slots: [slot], counts: [counts] })
      vocabulary.add(term)
    },
    unpost(term: string, slot: number): void {
      const posting = postings.get(term)
      const at = posting?.slots.indexOf(slot) ?? -1
      if (!posting || at < 0) return
      const lastSlot = posting.slots.pop() ?? 0
      const lastCounts = posting.counts.pop() ?? 0
      // The order within a posting is irrelevant, so the last one fills the gap.
      if (at < posting.slots.length) {
        posting.slots[at] = lastSlot
        posting.counts[at] = lastCounts
      }
      if (posting.slots.length > 0) return
      postings.delete(term)
      vocabulary.remove(term)
    }
  }
}
