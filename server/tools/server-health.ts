import type { ServerSummary } from '../../contract/servers.ts'
import type { StoredServer } from '../catalog/stored-tools.ts'
import type { ServerState } from '../connections/server-connection.ts'

/** Healthy means that its tools are really there, as far as anyone has looked; a call that failed is no illness of the server. */
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
