import type { ProgressCallback } from '@modelcontextprotocol/client'
import type { ApprovalAnswer } from '../../../contract/rest.ts'
import type { Caller } from '../../calls/caller.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import type { CallInput } from '../../connections/wire/call-input.ts'
import type { NewCard } from '../../policy/approval-inbox.ts'
import type { ClientPrompter } from './client-prompter.ts'

export interface CallContext {
  caller: Caller
  signal: AbortSignal
  onProgress?: ProgressCallback | undefined
  /** The client takes a task in place of a result that takes long. */
  takesTasks?: boolean | undefined
  /** Asks the client questions during the call. */
  prompter?: ClientPrompter | undefined
  /** Called when a person is asked for approval. */
  onAsking?: (() => void) | undefined
  /** Answers the card in place of the client or the page, or throws `ApprovalPending`: the calls of a program wait in its log. */
  asker?: ((card: NewCard) => Promise<ApprovalAnswer>) | undefined
  /** Called when the call is allowed and about to be sent. If it fails, nothing is sent. */
  beforeSending?: (() => Promise<void>) | undefined
  /** The `_meta` that is passed on to the child: trace context. */
  meta?: Record<string, unknown> | undefined
  /** In the newer revision: the answers to what the child asked for. */
  retry?: CallInput['retry']
}

export interface ToolRequest {
  server: string
  tool: StoredTool
  args: Record<string, unknown>
  /** The source of each argument that the caller did not give. */
  filledBy?: Record<string, string> | undefined
  /** Needs approval whatever the policy: nobody named this tool, or its arguments are a guess and it may write. */
  requiresApproval?: boolean | undefined
  /** The tool as a server last listed it for this client; by default, as the tool index has it. */
  latest?: ((server: string) => StoredTool | undefined) | undefined
  /** Without approval the tool may only read, also by the definition that its server has at that moment. */
  mustRead?: boolean | undefined
  /** Whether a rule allows this tool on another server. Where none does, that server's tool may stand in only if it reads. */
  isRuled?: ((server: string) => boolean) | undefined
  /** Something that the person must know before they decide; part of what they approve. */
  warning?: string | undefined
  /** The sentence that the tool or its values come from. Without approval the tool may only read. */
  found?: FoundBy | undefined
}

export interface FoundBy {
  request: string
  confidence: number
  /** The client named the tool; the request is doubtful. */
  isNamed: boolean
  /** Why it needs approval. */
  reason?: string | undefined
}
