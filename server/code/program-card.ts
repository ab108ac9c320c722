import type { CallPlace } from '../../contract/program-origin.ts'
import { isRecord } from '../lib/is-record.ts'
import type { NewCard, PostedCard } from '../policy/approval-inbox.ts'
import type { ProgramCall } from './program-call.ts'
import type { RunLog, RunState } from './run-log.ts'

const MAX_SOURCE_CHARS = 300
const MIN_CHARS = 4
/** A part of a longer text must be longer, or every word would count. */
const MIN_PART_CHARS = 6
const MAX_PART_CHARS = 2000
const MAX_PARTS = 5000
const MAX_SOURCES = 20
const MAX_VALUES = 200
const MAX_DEPTH = 20

/**
 * The card of a program's call. Its id follows from the call and what the person sees, so that a run that asks again after a crash
 * gets the answer to the same card.
 */
export function programCard(
  { runId, state }: Pick<RunLog, 'runId' | 'state'>,
  { n, line, args }: ProgramCall,
  card: NewCard,
  expiresAt: number
): PostedCard {
  const source = state.program?.code.split('\n')[line - 1]?.trim().slice(0, MAX_SOURCE_CHARS) ?? ''
  return {
    ...card,
    id: `${runId}.${n}.${card.hash}`,
    createdAt: Date.now(),
    expiresAt,
    code: { runId, n, line, source, sources: sourcesOf(args, state) }
  }
}

/**
 * Finds the latest earlier result that contains each value, or whose texts are part of it. A hint for the person: a program can
 * disguise a value, so a missing source proves nothing.
 */
function sourcesOf(args: Record<string, unknown>, { calls, order }: RunState): CallPlace['sources'] {
  const wanted = leaves(args, '').slice(0, MAX_VALUES)
  const found = new Map<string, CallPlace['sources'][number]>()
  for (const n of order.toReversed()) {
    const { call, done } = calls.get(n) ?? {}
    if (call?.kind !== 'tool' || !done?.outcome.ok) continue
    const { value } = done.outcome
    const text = JSON.stringify(value) ?? ''
    let parts: string[] | undefined
    for (const { path, value: leaf } of wanted) {
      if (found.has(path)) continue
      const isThere = text.includes(JSON.stringify(leaf).slice(1, -1))
      parts ??= leaves(value, '')
        .map((part) => part.value)
        .filter(({ length }) => length >= MIN_PART_CHARS && length <= MAX_PART_CHARS)
        .slice(0, MAX_PARTS)
      if (isThere || parts.some((part) => leaf.includes(part)))
        found.set(path, { path, server: call.server, tool: call.tool, n })
    }
    if (found.size >= MAX_SOURCES) break
  }
  return [...found.values()].slice(0, MAX_SOURCES)
}

/** All texts and longer numbers in a value, with their paths. */
function leaves(value: unknown, path: string, depth = 0): { path: string; value: string }[] {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text === 'string') return text.length >= MIN_CHARS ? [{ path, value: text }] : []
  if (depth > MAX_DEPTH) return []
  if (Array.isArray(value)) return value.flatMap((item, at) => leaves(item, `${path}[${at}]`, depth + 1))
  if (!isRecord(value)) return []
  return Object.entries(value).flatMap(([key, item]) => leaves(item, path ? `${path}.${key}` : key, depth + 1))
}
