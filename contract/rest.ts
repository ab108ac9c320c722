/** Bodies of the HTTP API. */
import type { CallEntry, TranscriptEntry } from './transcript.ts'

export interface ModelsReply {
  default: string
  models: { id: string; name: string; provider: string }[]
  providers: { id: string; ok: boolean; reason?: string }[]
}

export interface SessionSummary {
  sessionId: string
  title: string
  model: string | null
  createdAt: number
  activeAt: number
  sandbox: 'none' | 'running' | 'paused' | 'recycled'
  /** ms until it is recycled; null when it has no sandbox. */
  recycleInMs: number | null
  pendingApprovals: number
}

export interface SessionsReply {
  /** The one that was active last comes first. */
  sessions: SessionSummary[]
  /** Give it as `before` for those that follow; null: there are no more. */
  next: string | null
  /** How many there are in all; with a filter: how many it finds. */
  total: number
  /** Only with `waiting`: how many calls need an approval in all of them. */
  waitingCalls?: number
}

/** A part of a conversation: entries in order, and the calls among them. */
export interface EntriesReply {
  entries: TranscriptEntry[]
  calls: Record<string, CallEntry>
  /** Give it as `before` for what is older; null: this is the beginning. */
  olderBefore: number | null
}

export interface ErrorReply {
  error: { code: string; message: string; retryAfterSeconds?: number }
}

/** A file of a session's workspace. Its name is hostile text. */
export interface WorkspaceFile {
  path: string
  type: 'file' | 'directory' | 'symlink' | 'other'
  size: number
  /** Of a file; else 0. */
  mtimeMs: number
}

/** How large an uploaded file may be, unless the operator sets another limit; the page shows pictures up to this size. */
export const UPLOAD_MB = 10

export interface FileListing {
  files: WorkspaceFile[]
  truncated: boolean
  /** The largest file that can be uploaded. */
  maxUploadBytes?: number
}

/** A call of an outside client that waits for a person. Everything in it is hostile text. */
export interface ApprovalCard {
  id: string
  /** Of server, tool, definition and arguments: an answer names what its giver has seen. */
  hash: string
  server: string
  tool: string
  args: Record<string, unknown>
  /** What filled which parameter, where the caller did not. */
  filledBy?: Record<string, string>
  definitionChange?: { before: string; after: string }
  asker: { door: string; client?: string }
  createdAt: number
  expiresAt: number
}

export interface ApprovalAnswer {
  approved: boolean
  reason?: string
}

export interface ApprovalsReply {
  approvals: ApprovalCard[]
  /** The server's clock, for the time that is left. */
  now: number
}

export interface OwnerReply {
  /** False: the page is a new owner from now on. What it had before, if anything, is not shown to it. */
  isKnown: boolean
}
