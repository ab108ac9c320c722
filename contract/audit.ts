/** The audit trail as it is read: one entry per routing decision and per call, newest first. */
import { z } from 'zod'

/**
 * Of a call: until `unknown`; of a routing decision: the rest. `asked`: its client was asked something, and calls again with the
 * answer. `unknown`: it may have run, and nobody knows how it ended.
 */
export const AUDIT_OUTCOMES = [
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
  /** Sorts by time; what `before` takes. */
  id: z.string(),
  /** ISO 8601. */
  at: z.string(),
  kind: z.enum(['route', 'call']),
  /** `local`, or a hash of who it was. */
  owner: z.string(),
  door: z.enum(['stdio', 'http', 'chat']),
  client: z.string().optional(),
  /** The chat's session. */
  session: z.string().optional(),
  /** The tool of ours that was asked: `find_tool`, `execute`; of routing decisions. */
  by: z.string().optional(),
  /** Only where AUDIT_ARGUMENTS is on. */
  request: z.string().optional(),
  /** SHA-256 of the request, and how many characters it has. */
  requestHash: z.string().optional(),
  requestLength: z.number().optional(),
  candidates: z.array(auditCandidate).optional(),
  server: z.string().optional(),
  tool: z.string().optional(),
  /** SHA-256 of the arguments as canonical JSON. */
  argumentsHash: z.string().optional(),
  /** JSON text; only where AUDIT_ARGUMENTS is on. */
  arguments: z.string().optional(),
  attempts: z.number().optional(),
  /** The tool's definition had changed, and nobody had accepted the change. */
  definitionChanged: z.literal(true).optional(),
  ms: z.number().optional(),
  outcome: auditOutcome,
  /** Of docs/ERRORS.md, where it was refused or failed. */
  code: z.string().optional()
})
export type AuditEntry = z.infer<typeof auditEntry>

export const auditQuery = z.object({
  limit: z.coerce.number().int().min(1).max(500).default(50),
  before: z.string().max(100).optional(),
  server: z.string().max(200).optional(),
  tool: z.string().max(200).optional(),
  outcome: auditOutcome.optional()
})
export type AuditQuery = z.infer<typeof auditQuery>

export const auditReply = z.object({
  entries: z.array(auditEntry),
  /** Give it as `before` for what is older; null: there is nothing. */
  next: z.string().nullable(),
  /** Why nothing can be recorded at the moment, and calls are refused. */
  problem: z.string().optional()
})
export type AuditReply = z.infer<typeof auditReply>
