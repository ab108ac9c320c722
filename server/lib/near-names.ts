import { inPlainLetters } from './look-alikes.ts'
import { normalForm } from './normal-form.ts'

const MAX_NAMES = 3
const MAX_CHARS = 100
/** No server has a name as long as this. */
const MAX_FOLDED = 200

/** " Did you mean …?" with the known names that are most like this one; empty if none is. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const wanted = name.slice(0, MAX_CHARS).toLowerCase()
  const near = [...known]
    .map((other) => ({ other, distance: distanceOf(wanted, other.slice(0, MAX_CHARS).toLowerCase()) }))
    .filter(({ other, distance }) => distance <= Math.max(1, Math.floor(Math.min(wanted.length, other.length) / 3)))
    .toSorted((a, b) => a.distance - b.distance || (a.other < b.other ? -1 : 1))
    .slice(0, MAX_NAMES)
  return near.length === 0 ? '' : ` Did you mean ${near.map(({ other }) => `"${other}"`).join(' or ')}?`
}

/** Edits from one to the other; two swapped letters count as one edit, and so does a part of the other. */
function distanceOf(a: string, b: string): number {
  if (a === b) return 0
  if (Math.min(a.length, b.length) > 2 && (a.includes(b) || b.includes(a))) return 1
  let last: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwapped ? (last[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(change, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    last = row
    row = next
  }
  return row[b.length] ?? 0
}

/** A name as people and file systems compare it: without capital letters, accents, outer spaces, Unicode variants and look-alikes. */
export function foldName(name: string): string {
  return inPlainLetters(normalForm(name.slice(0, MAX_FOLDED), 'NFKD'))
    .trim()
    .toLowerCase()
}

/** Two such names would be taken for each other: in a list, on an approval card, as the name of a log file. */
export function alikeName(names: Iterable<string>, wanted: string): string | undefined {
  const folded = foldName(wanted)
  for (const name of names) if (foldName(name) === folded) return name
  return undefined
}
