/** The commands of approval modes, reviews, reverts and rewinds. */
import { z } from 'zod'
import { changeId, chosenPaths, conflictChoices, seenConflicts } from './change-set.ts'
import { MAX_COMMENT_CHARS, reviewId } from './effect-events.ts'
import { APPROVAL_MODES } from './modes.ts'

export const EFFECT_COMMANDS = {
  'mode:select': z.object({ mode: z.enum(APPROVAL_MODES) }),
  'review:decide': z.object({
    reviewId,
    /** The hash of the changes that the person saw. */
    hash: z.string().min(1).max(200),
    accept: z.union([z.enum(['all', 'none']), chosenPaths]),
    choices: conflictChoices.optional(),
    seenConflicts: seenConflicts.optional(),
    comment: z.string().trim().max(MAX_COMMENT_CHARS).optional()
  }),
  /**
   * Undoes one version of the workspace, or all versions since that one, it included. `hash` is that of the plan that the person saw
   * (`GET /api/sessions/:id/changes/:changeId/revert?scope=`). `paths` limits it to these files.
   */
  'files:revert': z.object({
    changeId,
    scope: z.enum(['one', 'since']),
    hash: z.string().min(1).max(200),
    paths: chosenPaths.optional(),
    choices: conflictChoices.optional()
  })
} as const
