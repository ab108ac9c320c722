import { type AuditFamily, type AuditFile, rowsOf } from './audit-files.ts'
import type { ChainHead, PrunedRows, Row } from './audit-row.ts'

export interface PruneLimits {
  /** `maxBytes` limits the files of this family; those of the other one are removed only for their age. */
  family: AuditFamily
  maxBytes: number
  maxAgeMs: number
  now: number
  /** The file that this process writes. */
  current: string
}

/** Many process starts leave many chains: removed rows of the oldest ones are counted together under this name. */
const MAX_RECORDS = 256
const MANY_CHAINS = 'earlier'
const DAY_MS = 86_400_000

/** The files that are too old, and the oldest of those beyond the size limit. `files` must be sorted oldest first. */
export function pruneList(files: AuditFile[], limits: PruneLimits): AuditFile[] {
  const { family, maxBytes, maxAgeMs, now, current } = limits
  const isOld = isClockTrusted(files, limits) ? (file: AuditFile) => now - file.modifiedAt > maxAgeMs : () => false
  let bytes = files.reduce((sum, file) => sum + (file.family === family ? file.bytes : 0), 0)
  return files.filter((file) => {
    const isTooMuch = file.family === family && bytes > maxBytes
    if (file.path === current || (!isTooMuch && !isOld(file))) return false
    if (file.family === family) bytes -= file.bytes
    return true
  })
}

/**
 * Whether the log was written a while ago by the same clock. A clock that was set wrongly would make all files too old at once; it
 * is believed only after a day.
 */
function isClockTrusted(files: AuditFile[], { maxAgeMs, now }: PruneLimits): boolean {
  const minAgeMs = Math.min(DAY_MS, maxAgeMs / 2)
  return files.some(({ modifiedAt }) => now - modifiedAt >= minAgeMs && now - modifiedAt <= maxAgeMs)
}

export interface Removal {
  files: AuditFile[]
  heads: ChainHead[]
  removed: PrunedRows[]
}

/**
 * Collects what must be recorded about files before their removal: where each one ended, and what they recorded about chains that
 * still exist. A file that can't be read is not removed. If another process has removed a file meanwhile, that process has
 * recorded it.
 */
export function removalRecords(going: AuditFile[], all: AuditFile[]): Removal {
  const read = going.flatMap((file) => {
    const rows = rowsOf(file.path)
    return rows === undefined ? [] : [{ file, rows }]
  })
  const files = read.map(({ file }) => file)
  const left = new Set(all.filter((file) => !files.includes(file)).map(({ chain }) => chain))
  const heads = read.flatMap(({ rows }) => {
    const inherited = rows.flatMap((row) => (row.kind === 'pruned' ? row.heads : []))
    const last = rows.at(-1)
    const own = last ? [{ chain: last.chain, seq: last.seq, hash: last.hash }] : []
    return [...inherited.filter(({ chain }) => left.has(chain)), ...own]
  })
  // These files may themselves record that older files were removed.
  const earlier = read.flatMap(({ rows }) => rows.flatMap((row) => (row.kind === 'pruned' ? (row.removed ?? []) : [])))
  const removed = joined([...earlier, ...read.flatMap(({ rows }) => removedRows(rows))])
  return { files, heads: lastHeads(heads), removed }
}

/** Only the last head of each chain: chains are removed from their beginning, and a row with all heads would keep growing. */
function lastHeads(heads: ChainHead[]): ChainHead[] {
  const last = new Map<string, ChainHead>()
  for (const head of heads) if ((last.get(head.chain)?.seq ?? -1) < head.seq) last.set(head.chain, head)
  return [...last.values()]
}

function removedRows(rows: Row[]): PrunedRows[] {
  const [first, last] = [rows[0], rows.at(-1)]
  if (!first || !last) return []
  const calls = rows.filter(({ kind }) => kind === 'begin').length
  const { chain, seq: fromSeq, at: fromAt } = first
  return [{ chain, fromSeq, toSeq: last.seq, fromAt, toAt: last.at, rows: rows.length, calls }]
}

/** Joins neighbours into one record, so that the row about removals does not keep growing. */
function joined(all: PrunedRows[]): PrunedRows[] {
  const records: PrunedRows[] = []
  for (const each of all.toSorted((a, b) => a.chain.localeCompare(b.chain) || a.fromSeq - b.fromSeq)) {
    const last = records.at(-1)
    const follows = last && last.chain === each.chain && last.toSeq + 1 === each.fromSeq
    if (follows) records[records.length - 1] = joinPruned(last, each)
    else records.push(each)
  }
  records.sort((a, b) => a.toAt.localeCompare(b.toAt))
  const oldest = records.splice(0, Math.max(0, records.length - MAX_RECORDS))
  const [first, ...others] = oldest.map((each) => ({ ...each, chain: MANY_CHAINS, fromSeq: 0, toSeq: 0 }))
  return first ? [others.reduce(joinPruned, first), ...records] : records
}

/** Joins two parts of one chain. */
export function joinPruned(a: PrunedRows, b: PrunedRows): PrunedRows {
  const [first, last] = a.fromSeq <= b.fromSeq ? [a, b] : [b, a]
  const { chain, fromSeq, fromAt } = first
  return { chain, fromSeq, fromAt, toSeq: last.toSeq, toAt: last.toAt, rows: a.rows + b.rows, calls: a.calls + b.calls }
}
