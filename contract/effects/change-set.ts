/**
 * The changes that a call, a turn or a person made in the workspace: for each path, the entry before and the entry after. The events have
 * a summary with the first files; `GET /api/sessions/:id/changes/:changeId` lists all of them.
 */
import { z } from 'zod'

/** Maximum number of files that an event lists. */
export const MAX_LISTED_FILES = 100
export const MAX_LISTED_INSIDE = 20
const MAX_SEEN_CHARS = 100
const count = z.number().int().nonnegative()
/** A name that is not valid UTF-8 is written as in `WorkspacePath`: NUL, "b64:" and base64. */
export const workspacePath = z.string().min(1).max(16_384)
/** Begins the id of what one call of an accepted review has changed. */
export const PART = 'part:'
/** `call:` and the call's id, `review:` and the review's id, `part:` and the id of a call of a review, or another unique name. */
export const changeId = z.string().min(1).max(260)

/** One side of a change. `hash` is the SHA-256 of a file's content. */
const fileSide = z.discriminatedUnion('type', [
  z.object({ type: z.literal('file'), mode: count, size: count, hash: z.string().length(64) }),
  z.object({ type: z.literal('dir'), mode: count }),
  z.object({ type: z.literal('link'), target: z.string() })
])
export type FileSide = z.infer<typeof fileSide>

/**
 * One changed path. Without `before` it was created, without `after` it was deleted. With `from`, the file was renamed from there, and
 * `before` is what was there. A rename is one change of both paths: they are accepted together.
 */
const changedFile = z.object({
  path: workspacePath,
  from: workspacePath.optional(),
  before: fileSide.optional(),
  after: fileSide.optional(),
  /**
   * The workspace has something else there by now than `before`: both sides have changed the file. `seen` names what is there, and goes
   * back with the person's choice. With `at`, it is there: at the old path of a renamed file, or at a folder of this path. `inside`: new paths
   in the folder that is there, which a file takes the place of; the first of `insideTotal`.
   */
  conflict: z
    .object({
      now: fileSide.optional(),
      at: workspacePath.optional(),
      inside: z.array(workspacePath).max(MAX_LISTED_INSIDE).optional(),
      insideTotal: count.optional(),
      seen: z.string().max(MAX_SEEN_CHARS)
    })
    .optional()
})
export type ChangedFile = z.infer<typeof changedFile>

export const changeSummary = z.object({
  changeId,
  /** Binds a decision to exactly these changes. */
  hash: z.string().min(1).max(200),
  /** Number of changed files, renames counted once. */
  total: count,
  /** The first of them. */
  files: z.array(changedFile).max(MAX_LISTED_FILES)
})
export type ChangeSummary = z.infer<typeof changeSummary>

/** Maximum number of paths in one decision. */
const MAX_CHOSEN_PATHS = 50_000
const paths = z.array(workspacePath).max(MAX_CHOSEN_PATHS)
/** Some of the files that were shown. Whichever list is shorter is sent: one message has room for one megabyte. */
export const chosenPaths = z.union([paths, z.object({ allExcept: paths })])
export type ChosenPaths = z.infer<typeof chosenPaths>

/** The shorter way to name the files that were chosen. */
export function choiceOf(files: readonly ChangedFile[], isChosen: (path: string) => boolean): ChosenPaths {
  const all = files.map(({ path }) => path)
  const chosen = all.filter(isChosen)
  return 2 * chosen.length > all.length ? { allExcept: all.filter((path) => !isChosen(path)) } : chosen
}

export function isChosen(chosen: 'all' | 'none' | ChosenPaths): (path: string) => boolean {
  if (typeof chosen === 'string') return () => chosen === 'all'
  const named = new Set(namedIn(chosen))
  return Array.isArray(chosen) ? (path) => named.has(path) : (path) => !named.has(path)
}

export function namedIn(chosen: 'all' | 'none' | ChosenPaths): string[] {
  if (typeof chosen === 'string') return []
  return Array.isArray(chosen) ? chosen : chosen.allExcept
}

/** For files that both sides changed: which version counts. Paths that are not named have no conflict. */
export const conflictChoices = z.record(workspacePath, z.enum(['fork', 'workspace']))
export type ConflictChoices = z.infer<typeof conflictChoices>

/** For each choice, the `seen` of the conflict that was shown. If something else is there by then, the choice does not count. */
export const seenConflicts = z.record(workspacePath, z.string().max(MAX_SEEN_CHARS))
export type SeenConflicts = z.infer<typeof seenConflicts>

export type ChangeKind = 'created' | 'changed' | 'deleted' | 'renamed' | 'mode'

export function changeKind({ from, before, after }: ChangedFile): ChangeKind {
  if (from !== undefined) return 'renamed'
  if (!before) return 'created'
  if (!after) return 'deleted'
  const isSameContent =
    before.type === 'file' && after.type === 'file' ? before.hash === after.hash : before.type === after.type
  return isSameContent && before.type !== 'link' && after.type !== 'link' ? 'mode' : 'changed'
}
