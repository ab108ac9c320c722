import type { AuditEntry, AuditOutcome } from '../../contract/audit.ts'
import { type AuditFile, byChain, linesBackwards, listAuditFiles } from './audit-files.ts'
import { parseRow, type Row } from './audit-row.ts'
import { mayLive } from './process-birth.ts'

export interface AuditFilter {
  limit: number
  /** Return only entries older than the one with this id. */
  before?: string | undefined
  server?: string | undefined
  tool?: string | undefined
  outcome?: AuditOutcome | undefined
  /** ms. */
  since?: number | undefined
  /** ms; not included. */
  until?: number | undefined
  /** Whether the reader may see the entry. */
  allowed?(entry: AuditEntry): boolean
  /** Maximum number of entries to examine for one page; the reader continues from where it ended. */
  maxLookedAt?: number
}

export interface AuditPage {
  entries: AuditEntry[]
  next: string | null
}

type RowOf<K extends Row['kind']> = Extract<Row, { kind: K }>

const MAX_LOOKED_AT = 20_000
/** File times are coarse, and lag behind the times of the rows when the kernel is busy. */
const BEHIND_MS = 1000

/** Entries of all chains, newest first. Does not check the hashes; `verify` does. */
export function readAudit(dirs: readonly string[], filter: AuditFilter): AuditPage {
  const entries: AuditEntry[] = []
  const { maxLookedAt = MAX_LOOKED_AT } = filter
  let looked = 0
  for (const entry of newestFirst(dirs)) {
    // Not counted as looked at: otherwise a page that begins deep in the log would end before its first entry, for ever.
    if (filter.before !== undefined && entry.id >= filter.before) continue
    if (filter.since !== undefined && Date.parse(entry.at) < filter.since) break
    if (fits(entry, filter)) entries.push(entry)
    if (entries.length === filter.limit || ++looked === maxLookedAt) return { entries, next: entry.id }
  }
  return { entries, next: null }
}

function fits(entry: AuditEntry, { server, tool, outcome, until, allowed }: AuditFilter): boolean {
  return (
    (until === undefined || Date.parse(entry.at) < until) &&
    (server === undefined || entry.server === server) &&
    (tool === undefined || entry.tool === tool) &&
    (outcome === undefined || entry.outcome === outcome) &&
    (allowed?.(entry) ?? true)
  )
}

/** Opens a chain only when all newer entries have been returned: many process starts leave many files. */
function* newestFirst(dirs: readonly string[]): Generator<AuditEntry> {
  const unopened = [...byChain(listAuditFiles(dirs)).values()]
  const changedAt = (files: AuditFile[]) => files.at(-1)?.modifiedAt ?? 0
  unopened.sort((a, b) => changedAt(a) - changedAt(b))
  const open: { entry: AuditEntry; rest: Generator<AuditEntry> }[] = []
  for (;;) {
    open.sort((a, b) => (a.entry.id < b.entry.id ? 1 : -1))
    const [newest] = open
    const next = unopened.at(-1)
    if (next && (!newest || changedAt(next) + BEHIND_MS >= Date.parse(newest.entry.at))) {
      unopened.pop()
      const rest = chainBackwards(next)
      const first = rest.next()
      if (!first.done) open.push({ entry: first.value, rest })
      continue
    }
    if (!newest) return
    yield newest.entry
    const following = newest.rest.next()
    if (following.done) open.shift()
    else newest.entry = following.value
  }
}

function* chainBackwards(files: AuditFile[]): Generator<AuditEntry> {
  const later = new Map<number, LaterRows>()
  const isOver = once(() => chainIsOver(files))
  for (const { path } of files.toReversed()) {
    for (const line of linesBackwards(path)) {
      const row = parseRow(line)
      if (row?.kind === 'end') later.set(row.call, { end: row })
      else if (row?.kind === 'waits' || row?.kind === 'runs')
        later.set(row.call, { ...later.get(row.call), [row.kind]: row })
      else if (row?.kind === 'route') yield routeEntry(row)
      else if (row?.kind === 'begin') {
        yield callEntry(row, later.get(row.seq) ?? {}, isOver)
        later.delete(row.seq)
      }
    }
  }
}

/** Whether no more rows will come: the chain has a `stop` row, or its process is gone. */
function chainIsOver(files: AuditFile[]): boolean {
  const [first] = files
  const last = files.at(-1)
  for (const line of last ? linesBackwards(last.path) : []) {
    if (parseRow(line)?.kind === 'stop') return true
    break
  }
  const start = first && firstRow(first.path)
  return start?.kind === 'start' ? !mayLive(start) : false
}

function firstRow(path: string): Row | undefined {
  let first: string | undefined
  for (const line of linesBackwards(path)) first = line
  return first === undefined ? undefined : parseRow(first)
}

function entryId({ at, chain, seq }: Row): string {
  return `${at}-${chain}-${String(seq).padStart(10, '0')}`
}

function routeEntry(row: RowOf<'route'>): AuditEntry {
  const { chain: _, seq: __, prev: ___, hash: ____, who, ...decision } = row
  return { id: entryId(row), ...who, ...decision }
}

/** The rows about a call after its first one. */
interface LaterRows {
  end?: RowOf<'end'>
  waits?: RowOf<'waits' | 'runs'>
  runs?: RowOf<'waits' | 'runs'>
}

function callEntry(row: RowOf<'begin'>, { end, waits, runs }: LaterRows, isOver: () => boolean): AuditEntry {
  const { at, who, tool, argumentsHash } = row
  const isWaiting = waits !== undefined && runs === undefined
  // A call that nobody had approved when its process ended was never made.
  const outcome = end?.outcome ?? (isOver() ? (isWaiting ? 'cancelled' : 'unknown') : isWaiting ? 'waiting' : 'running')
  const { attempts, definitionChanged, code } = end ?? {}
  const answered = runs ?? end
  const waitedMs = waits && answered && Math.max(0, Date.parse(answered.at) - Date.parse(waits.at))
  const ms = end && Math.max(0, end.ms - (waitedMs ?? 0))
  const server = end?.server ?? row.server
  const known = { id: entryId(row), at, kind: 'call', ...who, server, tool, argumentsHash } as const
  return defined({ ...known, arguments: row.arguments, attempts, definitionChanged, ms, waitedMs, outcome, code })
}

function defined<T extends object>(value: T): T {
  for (const key of Object.keys(value) as (keyof T)[]) if (value[key] === undefined) delete value[key]
  return value
}

function once<T>(read: () => T): () => T {
  let known: { value: T } | undefined
  return () => {
    known ??= { value: read() }
    return known.value
  }
}
