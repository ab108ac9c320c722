/**
 * The client behind connections that it has for itself: a server's own requests and news carry no address, so that what comes
 * over such a connection is meant for the one client that is behind it. `connections.ts` makes the connections.
 */
import type { ClientCapabilities } from '@modelcontextprotocol/client'
import type { LiveServer, RawResult } from './live-server.ts'

export interface Peer {
  /** Which servers are told, and shape what they offer. */
  capabilities: ClientCapabilities
  /** A server's own request: elicitation, sampling, roots. `postpone` puts off the deadlines of the calls that may have led to it. */
  onRequest(server: string, request: PeerRequest, signal: AbortSignal, postpone: () => void): Promise<RawResult>
  onNotification(server: string, notification: PeerNotification): void
  /** It has been started, for the first time or again: it knows nothing of what the client wanted of it before. */
  onOpened(server: string, live: LiveServer): void
}

export interface PeerRequest {
  method: string
  params: Record<string, unknown>
}

export interface PeerNotification {
  method: string
  params?: Record<string, unknown> | undefined
}

/** Of two clients with the same key, a server offers both the same. */
export function capabilityKey({ elicitation, sampling, roots }: ClientCapabilities): string {
  const parts = [
    ...(elicitation ? ['elicitation', ...Object.keys(elicitation).map((mode) => `elicitation.${mode}`)] : []),
    ...(sampling ? ['sampling', ...Object.keys(sampling).map((part) => `sampling.${part}`)] : []),
    ...(roots ? ['roots'] : [])
  ]
  return parts.filter((part) => KNOWN_PARTS.has(part)).join(' ')
}

/** What else a client declares is its own word, and would make keys without end. */
const KNOWN_PARTS = new Set(
  'elicitation elicitation.form elicitation.url sampling sampling.tools sampling.context roots'.split(' ')
)
