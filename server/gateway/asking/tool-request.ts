import type { ProgressCallback } from '@modelcontextprotocol/client'
import type { Caller } from '../../calls/caller.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import type { CallInput } from '../../connections/live-server.ts'
import type { ClientPrompter } from './client-prompter.ts'

export interface CallContext {
  caller: Caller
  signal: AbortSignal
  onProgress?: ProgressCallback | undefined
  /** What the client can be asked in the middle of the call. */
  voice?: ClientPrompter | undefined
  /** What goes on to the child in `_meta`: trace context. */
  meta?: Record<string, unknown> | undefined
  /** In the new revision, what the child had asked for and now gets. */
  retry?: CallInput['retry']
}

export interface ToolRequest {
  server: string
  tool: StoredTool
  args: Record<string, unknown>
  /** What filled which argument, where the caller did not. */
  filledBy?: Record<string, string> | undefined
  /** A human has to approve it whatever the policy: nobody has named this tool, or its arguments are a guess at a write. */
  requiresApproval?: boolean | undefined
  /** The tool as a server last listed it for this client; undefined: as the tool index has it. */
  latest?: ((server: string) => StoredTool | undefined) | undefined
  /** How it was found, where nobody has named it. Without an approval it may only read. */
  found?: FoundBy | undefined
}

export interface FoundBy {
  request: string
  confidence: number
  /** Why it needs an approval. */
  reason?: string | undefined
}
