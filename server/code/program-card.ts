import type { CallPlace } from '../../contract/program-origin.ts'
import { headOf } from '../lib/cut-text.ts'
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
const MAX_PATH_CHARS = 200
/** Parts of one value that are looked at. */
const MAX_NODES = 20_000
/** Characters that are compared for one card. Everybody waits meanwhile, and a program makes hundreds of calls. */
const MAX_COMPARED = 20_000_000

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
 * disguise a value, and very much data is not searched to its end, so a missing source proves nothing.
 */
function sourcesOf(args: Record<string, unknown>, { calls, order }: RunState): CallPlace['sources'] {
  const wanted = leavesOf(args).slice(0, MAX_VALUES)
  const found = new Map<string, CallPlace['sources'][number]>()
  let left = MAX_COMPARED
  const has = (text: string, part: string) => {
    left -= text.length + part.length
    return left > 0 && text.includes(part)
  }
  for (const n of order.toReversed()) {
    if (found.size >= MAX_SOURCES || left <= 0) break
    const { call, done } = calls.get(n) ?? {}
    if (call?.kind !== 'tool' || !done?.outcome.ok) continue
    const { value } = done.outcome
    const text = JSON.stringify(value) ?? ''
    left -= text.length
    const parts = leavesOf(value)
      .map((part) => part.value)
      .filter(({ length }) => length >= MIN_PART_CHARS && length <= MAX_PART_CHARS)
      .slice(0, MAX_PARTS)
    for (const { path, value: leaf } of wanted) {
      if (found.has(path)) continue
      if (has(text, JSON.stringify(leaf).slice(1, -1)) || parts.some((part) => left > 0 && has(leaf, part)))
        found.set(path, { path: headOf(path, MAX_PATH_CHARS), server: call.server, tool: call.tool, n })
    }
  }
  return [...found.values()].slice(0, MAX_SOURCES)
}

/** The texts and longer numbers in a value, with their paths. */
function leavesOf(whole: unknown): { path: string; value: string }[] {
  const leaves: { path: string; value: string }[] = []
  let nodes = 0
  const look = (value: unknown, path: string, depth: number): void => {
    if (++nodes > MAX_NODES || depth > MAX_DEPTH) return
    const text = typeof value === 'number' ? String(value) : value
    if (typeof text === 'string') {
      if (text.length >= MIN_CHARS) leaves.push({ path, value: text })
    } else if (Array.isArray(text)) {
      for (let at = 0; at < text.length && nodes <= MAX_NODES; at++) look(text[at], `${path}[${at}]`, depth + 1)
    } else if (isRecord(text)) {
      for (const key in text) {
        if (nodes > MAX_NODES) break
        look(text[key], path ? `${path}.${key}` : key, depth + 1)
      }
    }
  }
  look(whole, '', 0)
  return leaves
}
