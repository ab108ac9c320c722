/** The commands of a client to its session over the socket. Every command is answered with `ok`, or with an error code and message. */
import { z } from 'zod'
import { attachmentInputs } from './attachments.ts'
import { conflictChoices, seenConflicts } from './effects/change-set.ts'
import { EFFECT_COMMANDS } from './effects/effect-commands.ts'
import { HISTORY_CHOICES } from './events.ts'
import { contentHash, pathTarget } from './path-target.ts'
import { ANSWER_ACTIONS, answerContent } from './questions/questions.ts'
import { sessionSettings } from './session-settings.ts'

export const MAX_MESSAGE_CHARS = 100_000
const MAX_ARGS_DEPTH = 64
const args = z
  .record(z.string(), z.unknown())
  .refine((value) => isNoDeeper(value, MAX_ARGS_DEPTH), `Arguments are nested at most ${MAX_ARGS_DEPTH} levels deep.`)
const NO_TEXT = 'A message must have some text.'
const anyText = z.string().trim().max(MAX_MESSAGE_CHARS)
const text = anyText.min(1, NO_TEXT)
/** Chosen by the client, so that a message that is sent again counts once. */
const messageId = z.string().min(1).max(100)

const message = z
  .union([text, z.object({ text: anyText, id: messageId.optional(), attachments: attachmentInputs.optional() })])
  .transform((value) => (typeof value === 'string' ? { text: value, id: undefined } : value))
  .refine((value) => value.text !== '' || hasFiles(value), NO_TEXT)

export const COMMAND_SCHEMAS = {
  message,
  'tool:approval': z.object({
    callId: z.string().min(1).max(200),
    approved: z.boolean(),
    /** The hash of the card. A decision about another version of the card is refused as stale. */
    hash: z.string().max(200).optional(),
    /** The arguments as edited by the person. */
    args: args.optional(),
    /** Where the path in `args` leads, as shown to the person. */
    target: pathTarget.optional(),
    /** SHA-256 of the present file that the card compared with. The write replaces no other content. */
    seen: contentHash.optional(),
    reason: z.string().max(2000).optional(),
    /** Only to keep a preview: which version counts of the files that have changed in the workspace meanwhile. */
    choices: conflictChoices.optional(),
    seenConflicts: seenConflicts.optional(),
    /** Allow this tool for the rest of this session, and approve its other waiting calls. */
    remember: z.boolean().optional(),
    /** Only for a call of a program that only reads: approve its other calls that only read, now and later. */
    reads: z.boolean().optional()
  }),
  /** Asks where the path of a waiting call would lead with these arguments. Answered with `target`, or without if they have no path. */
  'tool:target': z.object({ callId: z.string().min(1).max(200), args }),
  /** Answers a question of the call's MCP server. `values` belong to its form, if it is accepted. */
  'tool:answer': z.object({
    callId: z.string().min(1).max(200),
    id: z.string().min(1).max(100),
    action: z.enum(ANSWER_ACTIONS),
    values: answerContent.optional()
  }),
  'turn:cancel': z.unknown().transform(() => ({})),
  /**
   * Retries a turn that failed or was stopped, or has a finished answer written anew. `turnId` is the turn that the person saw end;
   * if it is no longer the last one, the command is refused. Answered with the `turnId` of the new attempt.
   */
  'turn:retry': z.object({ turnId: z.string().min(1).max(100).optional() }),
  'history:reset': z.unknown().transform(() => ({})),
  /**
   * Takes back the conversation from one of its entries on: a message, an answer or a call (then the whole step of the model that asked
   * for it). `from` is the entry's `seq`. Ends a running turn first. With `message`, this message takes its place in the same moment;
   * answered with its `turnId` then.
   */
  'history:rewind': z.object({ from: z.number().int().positive(), message: message.optional() }),
  /** Undoes the last rewind, whose `seq` is `of`, if nobody has said anything since. */
  'history:restore': z.object({ of: z.number().int().positive() }),
  'model:select': z.object({
    model: z.string().min(1).max(200),
    history: z.enum(HISTORY_CHOICES).optional(),
    /** Number of waiting approvals that the person knows will be cancelled. If more are waiting, the switch is refused. */
    maxCancelled: z.number().int().min(0).optional()
  }),
  /** Replaces the settings of the session. */
  'session:configure': sessionSettings,
  /** Ends an "always allow". */
  'tool:revoke': z.object({ server: z.string().max(200), name: z.string().max(200) }),
  /** Lets a session continue that has reached its token limit. */
  'limit:raise': z.unknown().transform(() => ({})),
  /** For a client that missed an event: answered with the whole snapshot. */
  'session:snapshot': z.unknown().transform(() => ({})),
  ...EFFECT_COMMANDS
} as const

function hasFiles(message: { attachments?: unknown[] | undefined }): boolean {
  return message.attachments !== undefined && message.attachments.length > 0
}

/** Deeper values would overflow the stack of code that walks them later, on the server or in the page. */
function isNoDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((item) => isNoDeeper(item, levels - 1))
}

export type CommandName = keyof typeof COMMAND_SCHEMAS
export type CommandInput<C extends CommandName> = z.input<(typeof COMMAND_SCHEMAS)[C]>
export type CommandData<C extends CommandName> = z.output<(typeof COMMAND_SCHEMAS)[C]>

export type Ack<T extends object = object> =
  | ({ ok: true } & T)
  | { ok: false; error: { code: string; message: string; retryAfterSeconds?: number } }
