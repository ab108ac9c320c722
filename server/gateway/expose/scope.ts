import type { RawResult } from '../../connections/live-server.ts'
import type { PeerNotification, PeerRequest } from '../../connections/peer.ts'

/** One request of a client under way at a server: what the server asks and says meanwhile is put down to it. */
export interface Scope {
  server: string
  ask(request: PeerRequest, signal: AbortSignal): Promise<RawResult>
  tell(notification: PeerNotification): void
}
