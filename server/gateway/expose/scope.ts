import type { Progress, RequestOptions, ServerContext } from '@modelcontextprotocol/server'
import type { PeerNotification, PeerRequest, RawResult } from '../../connections/wire/call-input.ts'
import type { rawResult } from '../../connections/wire/raw-result.ts'

/** The context of a client's request, made by the SDK, or by the fast path for plain calls. */
export interface RequestContext {
  mcpReq: Pick<
    ServerContext['mcpReq'],
    'signal' | 'method' | 'envelope' | '_meta' | 'requestState' | 'inputResponses' | 'notify'
  > & {
    send(request: PeerRequest, schema: typeof rawResult, options: RequestOptions): Promise<RawResult>
  }
  /** Reports progress at once: the SDK would send a report later than an answer of the fast path that follows it. */
  onProgress?: ((progress: Progress) => void) | undefined
}

/** One running request of a client at a server: the server's questions and messages meanwhile are assigned to it. */
export interface Scope {
  server: string
  ask(request: PeerRequest, signal: AbortSignal): Promise<RawResult>
  tell(notification: PeerNotification): void
}
