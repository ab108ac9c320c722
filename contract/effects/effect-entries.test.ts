import { expect, it } from 'vitest'
import { type EffectEntry, effectText } from './effect-entries.ts'

const FILES = { changeId: 'review:r', hash: 'h', total: 3, files: [] }
const decision = { reviewId: 'r', hash: 'h', accept: 'all' as const, by: 'human' as const }
function textOf(rejectedTotal: number, changed?: number): string {
  const changes = changed === undefined ? {} : { changes: { ...FILES, total: changed } }
  const applied = { reviewId: 'r', rejected: [], rejectedTotal, ...changes }
  const entry = { kind: 'review', seq: 1, at: 1, reviewId: 'r', changes: FILES, decision, applied }
  return effectText(entry as unknown as EffectEntry)
}

it.each([
  ['all files', textOf(0, 3), 'You reviewed 3 files and accepted all.'],
  ['files of which one was kept as in the workspace', textOf(1, 2), 'You reviewed 3 files and accepted 2.'],
  ['files that came with a new folder', textOf(1, 3), 'You reviewed 3 files and accepted 2.'],
  ['only files that were kept as in the workspace', textOf(3), 'You reviewed 3 files and accepted none.'],
  ['files that were there already', textOf(0), 'You reviewed 3 files and accepted all.']
])('counts the accepted files of a review: %s', (_, text, expected) => expect(text).toBe(expected))
