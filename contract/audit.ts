/** The audit log as the API returns it: one entry per routing decision and per call, newest first. */
import { z } from 'zod'

/**
 * The values up to `unknown` are for calls, the rest for routing decisions. `waiting`: a person is asked for approval. `asked`: the
 * client was asked a question, and calls again with the answer. `cancelled`: the call was cancelled before it was sent. `unknown`: the call may have run, and nobody knows how it ended;
 * the code is `cancelled` if it was cancelled after it was sent.
 */
export const AUDIT_OUTCOMES = [
  'waiting',
  'running',
  'ok',
  'tool_error',
  'refused',
  'failed',
  'cancelled',
  'asked',
  'unknown',
  'chosen',
  'found',
  'abstained',
  'needs_choice',
  'needs_params',
  'needs_confirmation'
] as const

const auditOutcome = z.enum(AUDIT_OUTCOMES)
export type AuditOutcome = z.infer<typeof auditOutcome>

const auditCandidate = z.object({ server: z.string(), tool: z.string(), confidence: z.number() })

const auditEntry = z.object({
  /** Sorted by time; can be passed as `before`. */
  id: z.string(),
  /** ISO 8601. */
  at: z.string(),
  kind: z.enum(['route', 'call']),
  /** `local`, or a hash of the owner. */
  owner: z.string(),
  door: z.enum(['stdio', 'http', 'chat']),
  client: z.string().optional(),
  /** The session of the chat. */
  session: z.string().optional(),
  /** For routing decisions: our tool that was called, `find_tool` or `execute`. */
  by: z.string().optional(),
  /** Only if AUDIT_ARGUMENTS is on. */
  request: z.string().optional(),
  /** SHA-256 of the request, and its length in characters. */
  requestHash: z.string().optional(),
  requestLength: z.number().optional(),
  candidates: z.array(auditCandidate).optional(),
  server: z.string().optional(),
  tool: z.string().optional(),
  /** SHA-256 of the arguments as canonical JSON. */
  argumentsHash: z.string().optional(),
  /** JSON text; only if AUDIT_ARGUMENTS is on. */
  arguments: z.string().optional(),
  attempts: z.number().optional(),
  /** The tool's definition had changed, and nobody had accepted the change. */
  definitionChanged: z.literal(true).optional(),
  /** The time that the call took, without the time that a person took to approve it. */
  ms: z.number().optional(),
  waitedMs: z.number().optional(),
  outcome: auditOutcome,
  /** The error code (docs/ERRORS.md) if it was refused or failed. */
  code: z.string().optional(),
  /** Added for the reader, and not recorded: they may open the session, and this is what the call was about. */
  mayOpen: z.literal(true).optional(),
  about: z.string().optional()
})
export type AuditEntry = z.infer<typeof auditEntry>

export const auditQuery = z.object({
  limit: z.coerce.number().int().min(1).max(500).default(50),
  before: z.string().max(100).optional(),
  server: z.string().max(200).optional(),
  tool: z.string().max(200).optional(),
  outcome: auditOutcome.optional(),
  /** A part of anything that an entry shows. */
  text: z.string().max(200).optional(),
  from: z.iso.datetime({ offset: true }).optional(),
  /** Not included. */
  to: z.iso.datetime({ offset: true }).optional()
})
export type AuditQuery = z.infer<typeof auditQuery>

export const auditReply = z.object({
  entries: z.array(auditEntry),
  /** Pass it as `before` to get older entries; null if there are none. */
  next: z.string().nullable(),
  /** Why nothing can be recorded at the moment, so that calls are refused. */
  problem: z.string().optional()
})
export type AuditReply = z.infer<typeof auditReply>
