/** Logs one connection, from "Connected" to "Disconnected", with the same `connection` id. */
import type { Logger } from '../lib/logger.ts'

export interface ConnectionFields {
  sessionId: string
  connection: string
  address: string
}

/** Socket.IO's names for why a connection ended. */
const REASONS: Record<string, string> = {
  'client namespace disconnect': 'the client left',
  'transport close': 'the client closed the connection, or its network was lost',
  'transport error': 'the connection failed',
  'ping timeout': 'the client no longer answered',
  'parse error': 'the client sent something unreadable',
  'server namespace disconnect': 'the server ended it',
  'server shutting down': 'the server is shutting down',
  'forced close': 'the server ended it',
  'forced server close': 'the server ended it'
}

/** Writes the first line. Returns a function that writes the last line once, however often it is called. */
export function logConnection(logger: Logger, fields: ConnectionFields): (reason: string) => void {
  const since = performance.now()
  let isOver = false
  logger.info(fields, 'Connected to the session.')
  return (reason) => {
    if (isOver) return
    isOver = true
    const ms = Math.round(performance.now() - since)
    logger.info({ ...fields, reason: REASONS[reason] ?? 'unknown', ms }, 'Disconnected from the session.')
  }
}
