import type { EventLog, StoredEvent } from '../storage/event-log.ts'
import { eventExists } from '../storage/store-errors.ts'

/** In memory, with keys but without epochs. */
export function fakeEventLog(): EventLog {
  const logs = new Map<string, { events: StoredEvent[]; keys: Set<string> }>()
  const logOf = (id: string) => {
    const log = logs.get(id) ?? { events: [], keys: new Set<string>() }
    logs.set(id, log)
    return log
  }
  return {
    async append(id, added) {
      const { events, keys } = logOf(id)
      for (const { key } of added) if (key !== undefined && keys.has(key)) throw eventExists(key)
      for (const { key } of added) if (key !== undefined) keys.add(key)
      const stored = added.map(({ type, data }, at) => {
        return { type, data: structuredClone(data), seq: events.length + at + 1, at: Date.now() }
      })
      events.push(...stored)
      return structuredClone(stored)
    },
    read: async (id, { after = 0 } = {}) => structuredClone(logOf(id).events.slice(after)),
    lastSeq: async (id) => logOf(id).events.length,
    bytes: async (ids = [...logs.keys()]) =>
      ids.reduce((sum, id) => sum + JSON.stringify(logs.get(id)?.events ?? []).length, 0),
    remove: async (id) => void logs.delete(id)
  }
}
