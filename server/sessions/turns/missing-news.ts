import type { EventData, SessionEvent } from '../../../contract/events.ts'
import { WORKSPACE } from '../../../contract/own-sources.ts'
import type { MissingTools } from './toolbox.ts'

const MAX_CHARS = 2000
const CODES = ['tools_missing', 'tools_back']

/** The notice about servers whose tools are missing: once when it happens, and again only when something about it changes. */
export function missingNews(
  missing: readonly MissingTools[],
  recent: readonly SessionEvent[]
): EventData<'session:notice'> | undefined {
  const last = recent.findLast(({ type, data }) => type === 'session:notice' && CODES.includes(data.code))
  const told = last?.type === 'session:notice' ? last.data : undefined
  const message = missing
    .map(({ why }) => why)
    .join(' ')
    .slice(0, MAX_CHARS)
  if (missing.length > 0) {
    if (told?.code === 'tools_missing' && told.message === message) return undefined
    return {
      code: 'tools_missing',
      message,
      servers: missing.map(({ server }) => server).filter((server) => server !== WORKSPACE)
    }
  }
  if (told?.code !== 'tools_missing') return undefined
  const servers = told.servers ?? []
  const names = servers.length === 0 ? 'All tools' : servers.map((server) => `"${server}"`).join(', ')
  return { code: 'tools_back', message: `${names} can be used again.`, servers: [] }
}
