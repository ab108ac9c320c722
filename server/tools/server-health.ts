import type { ServerSummary } from '../../contract/servers/servers.ts'
import type { StoredServer } from '../catalog/stored-tools.ts'
import type { ServerState } from '../connections/server-state.ts'

/** A server is healthy if its tools were there when last listed. A failed call does not make the server unhealthy. */
export function serverHealth(
  enabled: boolean,
  record: StoredServer | undefined,
  state: ServerState | undefined
): Pick<ServerSummary, 'health' | 'lastError'> {
  const lastError = state?.lastError ?? record?.lastError ?? null
  if (!enabled) return { health: 'off', lastError }
  if (record?.lastError || (state && state.breaker !== 'closed')) return { health: 'failing', lastError }
  if (!record || record.seenAt === 0) return { health: 'unseen', lastError }
  if (record.tools.length > 0) return { health: 'ok', lastError }
  return { health: 'failing', lastError: lastError ?? { at: record.seenAt, message: 'It runs, but has no tools.' } }
}
