/** What a client may ask of its session over the socket. Every command is answered, with `ok` or with a code and a sentence. */
import { z } from 'zod'
import { pathTarget } from './path-target.ts'

export const MAX_MESSAGE_CHARS = 100_000
const MAX_ARGS_DEPTH = 64
const args = z
  .record(z.string(), z.unknown())
  .refine((value) => isNoDeeper(value, MAX_ARGS_DEPTH), `Arguments are nested at most ${MAX_ARGS_DEPTH} levels deep.`)
const text = z.string().trim().min(1, 'A message must have some text.').max(MAX_MESSAGE_CHARS)
/** The client's own: the same message sent again, because an answer was lost, is one message. */
const messageId = z.string().min(1).max(100)

export const COMMAND_SCHEMAS = {
  message: z
    .union([text, z.object({ text, id: messageId.optional() })])
    .transform((value) => (typeof value === 'string' ? { text: value, id: undefined } : value)),
  'tool:approval': z.object({
    callId: z.string().min(1).max(200),
    approved: z.boolean(),
    /** The card's hash: an answer to another card than the one shown is refused as stale. */
    hash: z.string().max(200).optional(),
    /** What the human changed the arguments to. */
    args: args.optional(),
    /** Where the path in `args` leads, as the human was shown it. */
    target: pathTarget.optional(),
    reason: z.string().max(2000).optional(),
    /** Allow this tool for the rest of this session, and approve its other waiting calls. */
    remember: z.boolean().optional()
  }),
  /** Where the path of a waiting call would lead with these arguments; answered with `target`, or none if they have no path. */
  'tool:target': z.object({ callId: z.string().min(1).max(200), args }),
  'turn:cancel': z.unknown().transform(() => ({})),
  'history:reset': z.unknown().transform(() => ({})),
  'model:select': z.object({
    model: z.string().min(1).max(200),
    /** How many waiting approvals the person was told the switch cancels. With more waiting, it is refused. */
    maxCancelled: z.number().int().min(0).optional()
  }),
  /** Ends an "always allow". */
  'tool:revoke': z.object({ server: z.string().max(200), name: z.string().max(200) }),
  /** Lets a session go on that has used up its tokens. */
  'limit:raise': z.unknown().transform(() => ({})),
  /** For a client that missed an event: answered with the whole snapshot. */
  'session:snapshot': z.unknown().transform(() => ({}))
} as const

/** Else whoever walks them later, on the server or in the page, runs out of stack. */
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
