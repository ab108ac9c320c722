import { LOG_LEVEL_META_KEY } from '@modelcontextprotocol/server'

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']

/** The log level that a client of the newer revision wants for one request; undefined if it wants no messages. */
export function levelOf(envelope: Record<string, unknown> = {}): string | undefined {
  const level = envelope[LOG_LEVEL_META_KEY]
  return typeof level === 'string' ? level : undefined
}

export function reachesLevel(params: Record<string, unknown> = {}, envelope?: Record<string, unknown>): boolean {
  const level = levelOf(envelope)
  return level !== undefined && LEVELS.indexOf(String(params.level)) >= LEVELS.indexOf(level)
}
