import type { PeerNotification, PeerRequest, RawResult } from '../../connections/wire/call-input.ts'

/** One running request of a client at a server: the server's questions and messages meanwhile are assigned to it. */
export interface Scope {
  server: string
  ask(request: PeerRequest, signal: AbortSignal): Promise<RawResult>
  tell(notification: PeerNotification): void
}
