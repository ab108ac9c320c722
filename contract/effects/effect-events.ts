/** The events of approval modes, reviews, reverts and rewinds. */
import { z } from 'zod'
import { changeId, changeSummary, chosenPaths, conflictChoices, seenConflicts, workspacePath } from './change-set.ts'
import { APPROVAL_MODES } from './modes.ts'

const callId = z.string().min(1).max(200)
const turnId = z.string().min(1).max(100)
export const reviewId = z.string().min(1).max(100)
export const MAX_COMMENT_CHARS = 4000
const comment = z.string().max(MAX_COMMENT_CHARS)

export const EFFECT_SCHEMAS = {
  'mode:selected': z.object({ mode: z.enum(APPROVAL_MODES) }),
  /**
   * The call has run in a fork. The person decides with `tool:approval` and this `hash`: approving keeps the changes and gives the
   * result to the model, rejecting discards both. `result` is what `tool:result` has if they are kept.
   */
  'tool:previewed': z.object({
    callId,
    changes: changeSummary,
    /** Binds the call, its changes and its output. */
    hash: z.string().min(1).max(200),
    result: z.object({
      isError: z.boolean(),
      content: z.array(z.unknown()),
      ending: z.unknown().optional(),
      replaced: z.unknown().optional()
    }),
    /** How long the call itself ran. */
    durationMs: z.number().int().nonnegative().optional(),
    /** The command has left processes running. They were ended before its changes were read, so they never run in the sandbox. */
    leftRunning: z.literal(true).optional()
  }),
  /** The call could not run in a fork: from now on it waits for approval as in `ask`. */
  'tool:preview_refused': z.object({ callId, code: z.string().max(100), reason: z.string().max(1000) }),
  /**
   * The changes that the turns since the last review made in the fork. A later event with the same `reviewId` replaces it: another turn has
   * gone on in the same fork. Without files, there is nothing to review.
   */
  'review:opened': z.object({ reviewId, turnId, changes: changeSummary }),
  'review:resolved': z.object({
    reviewId,
    hash: z.string().min(1).max(200),
    accept: z.union([z.enum(['all', 'none']), chosenPaths]),
    choices: conflictChoices.optional(),
    seenConflicts: seenConflicts.optional(),
    comment: comment.optional(),
    by: z.enum(['human', 'cancel'])
  }),
  /** The accepted changes are in the workspace now. `changes` is the new version; it is missing if nothing changed. */
  'review:applied': z.object({
    reviewId,
    changes: changeSummary.optional(),
    /** The first of the files whose changes did not get into the workspace, for the model and the record. */
    rejected: z.array(workspacePath).max(100),
    rejectedTotal: z.number().int().nonnegative(),
    /** Why nothing could be applied. */
    problem: z.string().max(1000).optional()
  }),
  /** The person undid one version (`one`) or all versions since (`since`, that one included). The revert is a version itself. */
  'files:reverted': z.object({
    of: changeId,
    scope: z.enum(['one', 'since']),
    changes: changeSummary,
    by: z.literal('human')
  }),
  /**
   * The conversation from this event on was taken back. It stays readable, crossed out, but leaves the model's history. A rewind takes
   * the number of the next turn, so of a rewind and a message or a retry at the same moment, one counts.
   */
  'history:rewound': z.object({ from: z.number().int(), by: z.literal('human') }),
  /** The rewind with this `seq` was undone: what it took back counts again. It takes the number of the next turn too. */
  'history:restored': z.object({ of: z.number().int(), by: z.literal('human') })
} as const
