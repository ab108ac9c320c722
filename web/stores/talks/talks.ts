import { defineStore } from 'pinia'
import { shallowReactive } from 'vue'
import type { ServerLogLine } from '../../../contract/events.ts'
import type { ServerToClient } from '../../../contract/live.ts'

type Progress = Omit<Parameters<ServerToClient['tool:progress']>[0], 'callId'>
type Log = Parameters<ServerToClient['tool:log']>[0]

const MAX_CALLS = 40
const MAX_LINES = 200

/** Progress and log lines from the MCP servers of running calls. Only the end of the log is stored: the result contains it. */
export const useTalks = defineStore('talks', () => {
  const progress = shallowReactive(new Map<string, Progress>())
  const logs = shallowReactive(new Map<string, readonly ServerLogLine[]>())

  function report({ callId, ...news }: Progress & { callId: string }): void {
    set(progress, callId, news)
  }
  function log({ callId, lines, isWhole }: Log): void {
    set(logs, callId, [...(isWhole ? [] : (logs.get(callId) ?? [])), ...lines].slice(-MAX_LINES))
  }
  function clear(): void {
    progress.clear()
    logs.clear()
  }
  return { progress, logs, report, log, clear }
})

function set<T>(map: Map<string, T>, callId: string, value: T): void {
  map.delete(callId)
  map.set(callId, value)
  for (const oldest of map.keys()) {
    if (map.size <= MAX_CALLS) break
    map.delete(oldest)
  }
}
