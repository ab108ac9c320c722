import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createPostings } from './postings.ts'

const step = fc.record({
  term: fc.constantFrom('a', 'b', '__proto__'),
  slot: fc.integer({ min: 0, max: 6 }),
  counts: fc.integer({ min: 1, max: 99 })
})

it('holds what was added and not removed, with counts per slot, and reports its terms', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const vocabulary = new Set<string>()
      const postings = createPostings({
        add: (term) => vocabulary.add(term),
        remove: (term) => vocabulary.delete(term)
      })
      const expected = new Map<string, Map<number, number>>()
      for (const { term, slot, counts } of steps) {
        const known = expected.get(term) ?? new Map<number, number>()
        expected.set(term, known)
        if (known.delete(slot)) postings.unpost(term, slot)
        else {
          known.set(slot, counts)
          postings.post(term, slot, counts)
        }
      }
      for (const [term, known] of expected) {
        const posting = postings.get(term)
        expect(new Map(posting?.slots.map((slot, at) => [slot, posting.counts[at]]))).toEqual(known)
        expect(vocabulary.has(term)).toBe(known.size > 0)
      }
    })
  )
})

it('ignores the removal of something that is not there', () => {
  const postings = createPostings({ add() {}, remove() {} })
  postings.post('a', 1, 1)
  postings.unpost('a', 2)
  postings.unpost('b', 1)
  expect(postings.get('a')).toEqual({ slots: [1], counts: [1] })
})
