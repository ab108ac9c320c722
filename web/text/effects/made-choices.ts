import type { ChangedFile, ConflictChoices, SeenConflicts } from '../../../contract/effects/change-set.ts'

/** The versions that the person chose in conflicts, with what they were shown then. */
export type MadeChoices = Record<string, { version: 'fork' | 'workspace'; seen: string }>

/** The choices that still count: those for files that have not changed since they were shown. The others must be made again. */
export function countingChoices(
  files: readonly ChangedFile[],
  made: MadeChoices
): { choices: ConflictChoices; seenConflicts: SeenConflicts } {
  const counting = files.flatMap(({ path, conflict }) => {
    const choice = Object.hasOwn(made, path) ? made[path] : undefined
    return choice && conflict?.seen === choice.seen ? [{ path, ...choice }] : []
  })
  return {
    choices: Object.fromEntries(counting.map(({ path, version }) => [path, version])),
    seenConflicts: Object.fromEntries(counting.map(({ path, seen }) => [path, seen]))
  }
}

export function madeChoices(files: readonly ChangedFile[], choices: ConflictChoices): MadeChoices {
  return Object.fromEntries(
    files.flatMap(({ path, conflict }) => {
      const version = choices[path]
      return version && conflict ? [[path, { version, seen: conflict.seen }]] : []
    })
  )
}
