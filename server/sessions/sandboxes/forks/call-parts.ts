/**
 * Records the changes of each call of a review as a part, so that the files of one call can be undone alone. The parts are stored beside
 * the review's change set, and belong to it until the decision. Then they have only paths that were accepted.
 */
import { PART } from '../../../../contract/effects/change-set.ts'
import {
  type Checkpoint,
  type CheckpointDelta,
  isSameEntry,
  type StoredChange,
  type StoredChangeSet
} from '../../../storage/checkpoint-store.ts'

type Sets = Checkpoint['changeSets']

/** The difference between the changes of a fork before a call and after it; null if there is none. */
export function partOfCall(
  callId: string,
  was: readonly StoredChange[],
  now: readonly StoredChange[]
): StoredChangeSet | null {
  const known = new Map(was.map((change) => [change.path, change]))
  const made = now.map((change): StoredChange => {
    const earlier = known.get(change.path)
    known.delete(change.path)
    return earlier ? { ...change, before: earlier.after } : change
  })
  const putBack = [...known.values()].map(({ path, before, after }) => ({ path, before: after, after: before }))
  const changes = [...made, ...putBack].filter(({ before, after }) => !isSameEntry(before, after))
  if (changes.length === 0) return null
  return { id: `${PART}${callId}`, kind: 'part', at: Date.now(), about: { by: 'review', callId }, changes }
}

/** The ids of the parts whose review waits for a decision. */
export function openParts(sets: Sets): string[] {
  return undecided(sets).map(({ id }) => id)
}

/** Returns how the parts change when their review is applied as this version, or, with null, not at all. */
export function decidedParts(
  sets: Sets,
  shown: readonly StoredChange[],
  version: StoredChangeSet | null
): Pick<CheckpointDelta, 'drop' | 'keep'> {
  const parts = undecided(sets)
  const applied = new Map(version?.changes.map((change) => [change.path, change]))
  const bases = new Map(shown.map(({ path, before }) => [path, before]))
  const keep = parts.map(({ id, kind, at, about, changes }): StoredChangeSet => {
    const accepted = changes.flatMap((change) => {
      const { path, before } = change
      const whole = applied.get(path)
      if (!whole) return []
      const base = bases.get(path)
      bases.delete(path)
      // The workspace had another version when the review was accepted: that is what the first call has replaced.
      const isFirst = base !== undefined && isSameEntry(base, before)
      return [isFirst ? { ...change, before: whole.before } : change]
    })
    const { callId = '' } = about
    return { id, kind, at, about: { by: 'call', callId }, changes: accepted }
  })
  return { drop: parts.map(({ id }) => id), keep: keep.filter(({ changes }) => changes.length > 0) }
}

function undecided(sets: Sets): StoredChangeSet[] {
  return [...sets.values()].filter(({ kind, about }) => kind === 'part' && about.by === 'review')
}
