/**
 * The client behind a lane. A server's own requests and notifications carry no address, so whatever comes over a connection of
 * the lane is meant for this client. `connections.ts` makes the connections.
 */

import type { ClientCapabilities, ServerCapabilities } from '@modelcontextprotocol/client'
import { wordSet } from '../../lib/word-set.ts'
import type { PeerNotification, PeerRequest, RawResult, RequestInput } from '../wire/call-input.ts'

/** A server that has just been started. */
export interface OpenedServer {
  readonly revision: { kind: 'legacy' | 'modern' } | undefined
  readonly capabilities: ServerCapabilities
  request(input: RequestInput): Promise<RawResult>
}

export interface Peer {
  /** Sent to servers, which adapt what they offer. */
  capabilities: ClientCapabilities
  /**
   * Handles a server's own request: elicitation, sampling, roots. `postpone` extends the deadlines of the calls that may have led
   * to it.
   */
  onRequest(server: string, request: PeerRequest, signal: AbortSignal, postpone: () => void): Promise<RawResult>
  onNotification(server: string, notification: PeerNotification): void
  /** Called after every start: a restarted server has forgotten what the client set up before. */
  onOpened(server: string, live: OpenedServer): void
}

/** A server offers the same tools to two clients with the same key. */
export function capabilityKey({ elicitation, sampling, roots }: ClientCapabilities): string {
  const parts = [
    ...(elicitation ? ['elicitation', ...Object.keys(elicitation).map((mode) => `elicitation.${mode}`)] : []),
    ...(sampling ? ['sampling', ...Object.keys(sampling).map((part) => `sampling.${part}`)] : []),
    ...(roots ? ['roots'] : [])
  ]
  return parts.filter((part) => KNOWN_PARTS.has(part)).join(' ')
}

/** Only these count: clients may declare anything else, which would give an unlimited number of keys. */
const KNOWN_PARTS = wordSet(
  'elicitation elicitation.form elicitation.url sampling sampling.tools sampling.context roots'
)
