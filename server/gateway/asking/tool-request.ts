import type { ProgressCallback } from '@modelcontextprotocol/client'
import type { Caller } from '../../calls/caller.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import type { CallInput } from '../../connections/wire/call-input.ts'
import type { ClientPrompter } from './client-prompter.ts'

export interface CallContext {
  caller: Caller
  signal: AbortSignal
  onProgress?: ProgressCallback | undefined
  /** Asks the client questions during the call. */
  prompter?: ClientPrompter | undefined
  /** Called when a person is asked for approval. */
  onAsking?: (() => void) | undefined
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
