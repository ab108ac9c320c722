/**
 * The events of a session, as the browser receives and the log stores them. Each is stored with a gapless `seq`. Events that are only
 * published (deltas, live output) are in live.ts. Names and fields are public: extend them, don't change them.
 */
import { z } from 'zod'
import { addedFile, attachment } from './attachments.ts'
import { changeSummary, conflictChoices, seenConflicts } from './effects/change-set.ts'
import { EFFECT_SCHEMAS } from './effects/effect-events.ts'
import { fileChange } from './file-changes.ts'
import { contentHash, pathTarget } from './path-target.ts'
import { programOrigin } from './program-origin.ts'
import { ANSWER_ACTIONS, answerContent, MAX_QUESTION_CHARS, questionField } from './questions/questions.ts'
import { MAX_REPLACED_BYTES } from './replaced-text.ts'
import { sessionSettings } from './session-settings.ts'

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

/**
 * The source of a decision: the person in the page, the policy, "Always allow" in this session, the end of the turn, an import, or nobody yet:
 * in the mode `review`, the call runs in a fork, and a person decides on its changes afterwards.
 */
export const DECIDERS = ['human', 'policy', 'session', 'cancel', 'imported', 'review'] as const

/** How a command in the sandbox ended: with an exit code, or killed by a signal, which is what happens at its time limit. */
export const commandEnding = z.object({
  exitCode: z.number().int().nullable(),
  signal: z.string().max(20).nullable(),
  timedOut: z.boolean(),
  durationMs: z.number(),
  /** How the text of stdout and stderr took turns: characters of stdout, then of stderr, then of stdout, and so on. */
  order: z.array(z.number().int().nonnegative()).max(2000).optional()
})
export type CommandEnding = z.infer<typeof commandEnding>

/** The content that a write replaced; see replaced-text.ts. */
const count = z.number().int().nonnegative()
export const replaced = z.discriminatedUnion('is', [
  z.object({ is: z.literal('nothing') }),
  z.object({ is: z.literal('text'), head: count, tail: count, text: z.string().max(MAX_REPLACED_BYTES) }),
  z.object({ is: z.enum(['binary', 'large']), bytes: count })
])

/** A server's description of its own tool. Nobody has checked it. */
const toolClaims = z.object({
  description: z.string().max(1000),
  /** The description was longer. */
  isCut: z.literal(true).optional(),
  readOnly: z.boolean().optional(),
  destructive: z.boolean().optional()
})
export type ToolClaims = z.infer<typeof toolClaims>
/** A message that an MCP server logged. The text is hostile. */
const serverLogLine = z.object({ level: z.string(), text: z.string() })
export type ServerLogLine = z.infer<typeof serverLogLine>

/** How much of the conversation so far a new model gets: nothing (the default), or all of it. */
export const HISTORY_CHOICES = ['fresh', 'keep'] as const
export type HistoryChoice = (typeof HISTORY_CHOICES)[number]

export const EVENT_SCHEMAS = {
  'user:message': z.object({
    turnId,
    text: z.string(),
    id: z.string().optional(),
    attachments: z.array(attachment).optional()
  }),
  /** The attachments of this turn's message were put into the workspace; none if that failed. */
  'files:added': z.object({ turnId, files: z.array(addedFile) }),
  /**
   * One model step with its full text. `parts` is sent back to the provider, and never to the browser. `partial` says why the step
   * was cut off: a person stopped it, the model or its connection failed, or the server was stopped.
   */
  'agent:response': z.object({
    turnId,
    text: z.string(),
    /** The model's reasoning before its answer, or a summary of it, and how long that took. It is not part of the answer. */
    reasoning: z.string().optional(),
    reasoningMs: z.number().optional(),
    parts: z.array(z.unknown()).optional(),
    partial: z.enum(['stopped', 'failed', 'server']).optional()
  }),
  /** Tools of MCP servers that the model is offered from now on, in this order after those before. Tools of the sandbox always are. */
  'tools:offered': z.object({ turnId, tools: z.array(z.object({ server: z.string(), name: z.string() })) }),
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
    /** Set if the tool's definition differs from the accepted one. The card shows it, and approving the call accepts it. */
    definitionChange: z.object({ before: z.string(), after: z.string() }).optional(),
    /** For sandbox tools with a path; part of the hash. Missing in events of earlier versions. */
    target: pathTarget.optional(),
    /** Only for tools of MCP servers. Missing in events of earlier versions. */
    claims: toolClaims.optional(),
    /** The call runs in a fork: until the person has seen what it did, or until the review. Missing if it does not. */
    ahead: z.enum(['preview', 'review']).optional(),
    /** Set if a program makes the call. */
    program: programOrigin.optional(),
    /** The same call needs approval again, because it was approved but could not run as shown. */
    again: z
      .object({
        times: z.number().int(),
        reason: z.string(),
        isEdited: z.boolean().optional(),
        /** The servers that could not run it; the first one is the server that the model called. */
        failedOn: z.array(z.string()).optional()
      })
      .optional()
  }),
  'tool:approval_resolved': z.object({
    callId,
    approved: z.boolean(),
    by: z.enum(DECIDERS),
    reason: z.string().optional(),
    /** The person always allowed this tool in this session with this decision. */
    always: z.literal(true).optional(),
    /** With this decision, the person also approved the other calls of the same program that only read. */
    reads: z.literal(true).optional(),
    /** The arguments as edited by the person, and where their path led at that time. */
    args: args.optional(),
    target: pathTarget.optional(),
    /** SHA-256 of the file as the card showed it at the end, if it has changed since the card appeared. */
    seen: contentHash.optional(),
    /** Only for a preview that is kept: which version counts of the files that have changed in the workspace meanwhile. */
    choices: conflictChoices.optional(),
    seenConflicts: seenConflicts.optional()
  }),
  'tool:started': z.object({ callId }),
  'tool:result': z.object({
    callId,
    isError: z.boolean(),
    content: z.array(z.unknown()),
    /** The result was lost: the call may have run in part, in full or not at all. */
    outcome: z.literal('unknown').optional(),
    /** The call was running when a person stopped the turn, or when the server was stopped, restarted or lost. */
    interruptedBy: z.enum(['person', 'server']).optional(),
    /** Only for commands in the sandbox. Events of earlier versions have it only in the text. */
    ending: commandEnding.optional(),
    /** Only for a write of text in the sandbox, so that the record can show what changed. Missing in events of earlier versions. */
    replaced: replaced.optional(),
    /** The version of the workspace that the call made, or with `isForked` what the fork has so far. Missing if it changed nothing. */
    changes: changeSummary.optional(),
    /** It ran in a fork: its changes wait for the review. */
    isForked: z.literal(true).optional(),
    /** It ran in a fork and left processes running there. They end before its changes are shown: with the call, or with the turn that is reviewed. */
    leftRunning: z.literal(true).optional(),
    /** How long the call ran in a fork, if its changes were kept later: `tool:started` is the moment when they were put into the workspace. */
    durationMs: z.number().int().nonnegative().optional(),
    /** Only for a program: how many tokens of results and arguments the model did not have to read or write, estimated. */
    program: z.object({ savedTokens: z.number().int().nonnegative() }).optional(),
    /** The end of what the MCP server logged during the call. */
    log: z.array(serverLogLine).optional(),
    /** Set for clients, never in the log: parts of the call are left out here; `GET /api/sessions/:id/calls/:callId` has all of it. */
    isShortened: z.literal(true).optional()
  }),
  /** The call's MCP server asks the person something. It has fields for a form, or the address of a page to open. */
  'tool:question': z.object({
    callId,
    id: z.string().min(1).max(100),
    message: z.string().max(MAX_QUESTION_CHARS),
    fields: z.array(questionField).optional(),
    url: z.string().optional(),
    expiresAt: z.number()
  }),
  /** `values` go to the MCP server only, and never to the browser or the model. */
  'tool:question_answered': z.object({
    callId,
    id: z.string().min(1).max(100),
    action: z.enum(ANSWER_ACTIONS),
    by: z.enum(['human', 'deadline']),
    values: answerContent.optional()
  }),
  'agent:error': z.object({ turnId: turnId.optional(), code: z.string(), message: z.string() }),
  'turn:end': z.object({ turnId, reason: z.enum(TURN_END_REASONS) }),
  /**
   * The last answer is tried again, as a new turn without a message of its own. What turn `of` said from the event `from` on stays
   * readable but is no longer in the model's history. Results of calls that ran are kept.
   */
  'turn:reopened': z.object({ turnId, of: turnId, from: z.number().int() }),
  /** `cachedTokens` is the part of the input that the provider took from its cache, if it says so. */
  usage: z.object({
    turnId,
    inputTokens: z.number(),
    outputTokens: z.number(),
    /** Set if the request was not a step of the conversation, so it says nothing about the model's context. */
    of: z.literal('title').optional(),
    cachedTokens: z.number().optional(),
    /** The part of the input that the provider wrote to its cache, if it says so. */
    writtenTokens: z.number().optional(),
    /** By the prices at that time, if there was one for the model. */
    cost: z.number().optional(),
    currency: z.string().optional()
  }),
  /** `files` is what a person changed in the workspace themselves (code `files_changed`). */
  /** `servers`: the MCP servers that it is about. */
  'session:notice': z.object({
    code: z.string(),
    message: z.string(),
    files: z.array(fileChange).optional(),
    servers: z.array(z.string()).optional()
  }),
  /** Starts a fresh history, unless the conversation is kept; the old one stays readable. */
  'model:selected': z.object({ model: z.string(), history: z.enum(HISTORY_CHOICES).optional() }),
  'history:reset': z.object({}),
  /** The settings from now on; they replace the ones before. */
  'session:settings': sessionSettings,
  /** "Always allow this tool in this session", and its end. */
  'tool:allowed': z.object({ server: z.string(), name: z.string(), definition: z.string() }),
  'tool:allow_revoked': z.object({ server: z.string(), name: z.string() }),
  /** The spending limit was reached, and the person allowed the session to continue up to this many tokens. */
  'limit:raised': z.object({ tokens: z.number() }),
  ...EFFECT_SCHEMAS
} as const

export type EventType = keyof typeof EVENT_SCHEMAS
export type EventData<T extends EventType> = z.infer<(typeof EVENT_SCHEMAS)[T]>

/** An event as stored in the log. */
export type SessionEvent = { [T in EventType]: { type: T; seq: number; at: number; data: EventData<T> } }[EventType]

export type TurnEndReason = (typeof TURN_END_REASONS)[number]
export type Decider = (typeof DECIDERS)[number]
