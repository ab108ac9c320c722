/** Bodies of the HTTP API. */
import { z } from 'zod'
import type { ToolClaims } from './events.ts'
import type { CallPlace } from './program-origin.ts'
import type { ServersAdmin } from './servers/servers.ts'
import type { CallEntry, TranscriptEntry } from './transcript.ts'
import type { UsageSum } from './usage.ts'

export interface ModelsReply {
  default: string
  models: {
    id: string
    name: string
    provider: string
    /** Whether the model can look at images and PDFs; missing if nobody says. */
    inputs?: { images: boolean; pdfs: boolean }
    /** How many tokens it can read; missing if nobody says. */
    contextTokens?: number | undefined
  }[]
  providers: { id: string; ok: boolean; reason?: string }[]
  /** The most of a conversation that any model gets. */
  maxHistoryTokens: number
}

/** Anthropic, Gemini and OpenAI, and who may enter their keys here. */
export interface ProviderKeysReply {
  admin: ServersAdmin
  providers: {
    id: string
    label: string
    /** Where its key is from: the settings of the server, or this page. The key itself is never sent. */
    source: 'settings' | 'page' | null
    ok: boolean
    /** Why it can't be used, or what is wrong with its default model. */
    reason: string | null
  }[]
}

export const providerKeySchema = z.object({
  apiKey: z
    .string()
    .trim()
    .regex(/^[\x21-\x7e]{8,500}$/)
})

export interface SessionSummary {
  sessionId: string
  title: string
  model: string | null
  createdAt: number
  activeAt: number
  sandbox: 'none' | 'running' | 'paused' | 'recycled'
  /** Milliseconds until it is recycled; null if it has no sandbox. */
  recycleInMs: number | null
  pendingApprovals: number
  /** The first of those calls, with shortened arguments. Only if there are any. */
  waiting?: WaitingCall[]
  /** The open questions of MCP servers, oldest first. Only if there are any. */
  questions?: WaitingQuestion[]
  /** The review that waits for the person, with its number of changed files. */
  review?: { reviewId: string; files: number }
  isPinned: boolean
  isArchived: boolean
  /** It is in no list, and will be deleted for good unless it is brought back. */
  isDeleted?: true
}

/** The reply to `GET /api/sessions/:id`. */
export interface SessionDetails extends SessionSummary {
  usage: UsageSum
  /** How many tokens of the model's context the last step filled. */
  contextTokens: number
}

/** A call that needs approval, as a list shows it. Everything in it is hostile text. */
export interface WaitingCall {
  callId: string
  server: string
  name: string
  args: Record<string, unknown>
  requestedAt: number
}

/** A question of the call's MCP server. Everything in it is hostile text. */
export interface WaitingQuestion {
  callId: string
  id: string
  server: string
  name: string
  at: number
}

export interface SessionsReply {
  /** Pinned sessions come first, then the most recently active ones. */
  sessions: SessionSummary[]
  /** Pass it as `before` to get the next page; null if there are no more. */
  next: string | null
  /** Total number of sessions that match the filter. */
  total: number
  /** Only with `waiting`: total number of calls that need approval. */
  waitingCalls?: number
}

/** A place in a conversation where the words of a search were found. All texts are hostile. */
export interface SearchMatch {
  /** The `seq` of the message, call or review. */
  seq: number
  at: number
  by: 'user' | 'agent' | 'call' | 'review'
  /** The text around the first word that was found, and the word itself as it is written there. */
  before: string
  match: string
  after: string
}

interface SearchHit {
  summary: SessionSummary
  /** The newest messages with all words of the search. Empty if only the title has them. */
  matches: SearchMatch[]
  /** How many there are in all. */
  total: number
}

export interface SearchReply {
  /** Most recently active first. */
  hits: SearchHit[]
  /** False if the search reached its limit of time, size or hits; then the oldest sessions were not searched. */
  isComplete: boolean
}

/** A part of a conversation: entries in order, and the calls among them. */
export interface EntriesReply {
  entries: TranscriptEntry[]
  calls: Record<string, CallEntry>
  /** Pass it as `before` to get older entries; null at the beginning. */
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
  /** 0 if it is not a file. */
  mtimeMs: number
}

/** How large an uploaded file may be, unless the operator sets another limit; the page shows pictures up to this size. */
export const UPLOAD_MB = 10

/** The largest file that can be edited: its download has an `etag`, and an upload with that in `if-match` replaces only what was opened. */
export const EDIT_BYTES = 1024 * 1024

export interface FileListing {
  files: WorkspaceFile[]
  truncated: boolean
  /** The largest file that can be uploaded. */
  maxUploadBytes?: number
}

/** A call of an outside client that waits for a person. Everything in it is hostile text. */
export interface ApprovalCard {
  id: string
  /** Hash of server, tool, definition and arguments. A decision names it to prove what the person saw. */
  hash: string
  server: string
  tool: string
  args: Record<string, unknown>
  /** Where the values of parameters come from that the caller did not give. */
  filledBy?: Record<string, string>
  definitionChange?: { before: string; after: string }
  asker: { door: string; client?: string }
  /** The server's own words about its tool, which nobody has checked. */
  claims?: ToolClaims
  /** Something that the person must know before they decide. */
  warning?: string
  /** Set if a program makes the call (`run_code`). */
  code?: CallPlace & { runId: string }
  createdAt: number
  expiresAt: number
}

export interface ApprovalAnswer {
  approved: boolean
  reason?: string
}

export interface ApprovalsReply {
  approvals: ApprovalCard[]
  /** The server's time, to compute the remaining time. */
  now: number
}

/** A program of an outside client that has not ended. Its texts are hostile. */
export interface ClientRun {
  runId: string
  /** The name that the client gives itself. */
  client?: string
  door: string
  status: 'running' | 'waiting'
  /** The reason for which it waits or does not continue. */
  reason?: string
  startedAt: number
  /** When it is given up, if it waits until then. */
  expiresAt: number
  calls: number
  /** The beginning of the program. */
  head: string
}

export interface RunsReply {
  /** Oldest first. */
  runs: ClientRun[]
  /** The server's time, to compute the remaining time. */
  now: number
}

/** A person's instructions for all their sessions. */
export interface InstructionsReply {
  text: string
}

export interface OwnerReply {
  /** If false, the page is now a new owner, and earlier sessions are not shown. */
  isKnown: boolean
}
