/**
 * The session's events as the browser gets them and the log keeps them. Each is stored with a gapless `seq`; what is only
 * published (deltas, live output) is in live.ts. Names and fields are public: extend them, don't change them.
 */
import { z } from 'zod'
import { pathTarget } from './path-target.ts'

const callId = z.string().min(1).max(200)
const turnId = z.string().min(1).max(100)
const args = z.record(z.string(), z.unknown())

export const TURN_END_REASONS = [
  'done',
  'cancelled',
  'error',
  'step_limit',
  'spending_limit',
  'refused',
  'length'
] as const

/** Who decided: the person in the page, the policy, an "Always allow" of this session, or the end of the turn. */
export const DECIDERS = ['human', 'policy', 'session', 'cancel'] as const

/** How a command in the sandbox ended: with an exit code, or killed by a signal, which is what happens at its time limit. */
export const commandEnding = z.object({
  exitCode: z.number().int().nullable(),
  signal: z.string().max(20).nullable(),
  timedOut: z.boolean(),
  durationMs: z.number()
})
export type CommandEnding = z.infer<typeof commandEnding>

export const EVENT_SCHEMAS = {
  'user:message': z.object({ turnId, text: z.string(), id: z.string().optional() }),
  /** One model step, full text. `parts` is what goes back to the provider; the server keeps it to itself. */
  'agent:response': z.object({ turnId, text: z.string(), parts: z.array(z.unknown()).optional() }),
  'tool:approval_required': z.object({
    callId,
    turnId,
    server: z.string(),
    name: z.string(),
    args,
    /** Hash of the tool's name, description and schema. */
    definition: z.string(),
    /** Binds session, call, tool definition, arguments and target. */
    hash: z.string(),
    queuePosition: z.number().int(),
    totalInQueue: z.number().int(),
    /** A tool whose definition is not the one first accepted: shown, and accepted with the approval. */
    definitionChange: z.object({ before: z.string(), after: z.string() }).optional(),
    /** Of a sandbox tool that takes a path; part of the hash. Cards from before this was known have none. */
    target: pathTarget.optional(),
    /** The same call is asked for once more, because it was approved and could not run as it was shown. */
    again: z.object({ times: z.number().int(), reason: z.string(), isEdited: z.boolean().optional() }).optional()
  }),
  'tool:approval_resolved': z.object({
    callId,
    approved: z.boolean(),
    by: z.enum(DECIDERS),
    reason: z.string().optional(),
    /** What the human edited the arguments to, and where their path led when they did. */
    args: args.optional(),
    target: pathTarget.optional()
  }),
  'tool:started': z.object({ callId }),
  'tool:result': z.object({
    callId,
    isError: z.boolean(),
    content: z.array(z.unknown()),
    /** The answer was lost: it may have run in part, in full or not at all. */
    outcome: z.literal('unknown').optional(),
    /** It was running when a person stopped the turn, or when the server was stopped, restarted or lost. */
    interruptedBy: z.enum(['person', 'server']).optional(),
    /** Only for commands in the sandbox. Events of earlier versions have none: there only the text says it. */
    ending: commandEnding.optional()
  }),
  'agent:error': z.object({ turnId: turnId.optional(), code: z.string(), message: z.string() }),
  'turn:end': z.object({ turnId, reason: z.enum(TURN_END_REASONS) }),
  usage: z.object({ turnId, inputTokens: z.number(), outputTokens: z.number() }),
  'session:notice': z.object({ code: z.string(), message: z.string() }),
  /** Starts a fresh history; the old one stays readable. */
  'model:selected': z.object({ model: z.string() }),
  'history:reset': z.object({}),
  /** "Always allow this tool in this session", and its end. */
  'tool:allowed': z.object({ server: z.string(), name: z.string(), definition: z.string() }),
  'tool:allow_revoked': z.object({ server: z.string(), name: z.string() }),
  /** The spending limit was reached and the human said to go on, up to this many tokens. */
  'limit:raised': z.object({ tokens: z.number() })
} as const

export type EventType = keyof typeof EVENT_SCHEMAS
export type EventData<T extends EventType> = z.infer<(typeof EVENT_SCHEMAS)[T]>

/** An event as it stands in the log. */
export type SessionEvent = { [T in EventType]: { type: T; seq: number; at: number; data: EventData<T> } }[EventType]

export type TurnEndReason = (typeof TURN_END_REASONS)[number]
export type Decider = (typeof DECIDERS)[number]
