/** The input of a call to a server, and its result. */
import type { ProgressCallback } from '@modelcontextprotocol/client'
import type { Caller } from '../../calls/caller.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'

export interface CallInput {
  caller: Caller
  tool: string
  args: Record<string, unknown>
  /** The call may have effects and is not known to be safe to repeat. */
  mustNotRepeat: boolean
  signal: AbortSignal
  onProgress?: ProgressCallback | undefined
  meta?: Record<string, unknown> | undefined
  /** The answers to questions that the server returned in place of a result, and its `requestState`. */
  retry?: { inputResponses?: Record<string, unknown>; requestState?: string } | undefined
  /** Handles the server's own request during the call. Only in a lane whose calls are asked one by one (`asking/call-scopes.ts`). */
  onRequest?: ((request: PeerRequest, signal: AbortSignal) => Promise<RawResult>) | undefined
  /** Gets the parameters of the server's log messages during the call, in such a lane. */
  onLog?: ((params: Record<string, unknown>) => void) | undefined
  /** Checks the running server's own definition right before the call is sent; if false, the call is not sent. */
  mayRun?: ((tool: StoredTool, tools: StoredTool[]) => Promise<boolean>) | undefined
}

/** Any request except a tool call. */
export interface RequestInput {
  caller: Caller
  method: string
  params: Record<string, unknown>
  signal: AbortSignal
  onProgress?: ProgressCallback | undefined
}

export type RawResult = Record<string, unknown>

/** A server's own request: elicitation, sampling, roots. */
export interface PeerRequest {
  method: string
  params: Record<string, unknown>
}

export interface PeerNotification {
  method: string
  params?: Record<string, unknown> | undefined
}
