import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type AuditFile, byChain, listAuditFiles } from './audit-files.ts'
import { type ChainHead, FIRST_PREV, openRow, type PrunedRows, type Row } from './audit-row.ts'
import { mayLive } from './process-birth.ts'
import { joinPruned } from './prune-list.ts'

export interface VerifiedChain {
  chain: string
  /** `unclosed`: its process was killed, or its last rows were cut off before any other chain began. */
  /** `pruned`: all its files were removed, and a later chain records why. */
  state: 'intact' | 'running' | 'unclosed' | 'broken' | 'pruned'
  rows: number
  head?: ChainHead | undefined
  problems: { file: string; line: number; reason: string }[]
  /** Rows of this chain that were removed for their age or the size limit, as another chain records. */
  pruned?: PrunedRows | undefined
}

interface Walk {
  rows: Row[]
  result: VerifiedChain
}

/** Checks every hash and link, and what the chains record about each other. */
export function verifyAudit(dirs: readonly string[]): VerifiedChain[] {
  const walks = new Map([...byChain(listAuditFiles(dirs))].map(([chain, files]) => [chain, walkChain(chain, files)]))
  const pruned = new Map<string, Map<number, string>>()
  for (const { rows } of walks.values()) {
    for (const row of rows) if (row.kind === 'pruned') for (const head of row.heads) remember(pruned, head)
  }
  const removed = removedByChain([...walks.values()])
  for (const { rows, result } of walks.values()) checkBeginning(rows, result, pruned.get(result.chain))
  for (const { rows } of [...walks.values()]) {
    const [first] = rows
    for (const head of first?.kind === 'start' ? first.follows : []) checkFollowed(walks, head, pruned.get(head.chain))
  }
  for (const [chain, rows] of removed) {
    const walk = walks.get(chain)
    // An instance removes its own files; their copies in the bucket may still be there.
    if (walk && (walk.rows[0]?.seq ?? 0) <= rows.fromSeq) continue
    if (walk) walk.result.pruned = rows
    else walks.set(chain, { rows: [], result: { chain, state: 'pruned', rows: 0, problems: [], pruned: rows } })
  }
  return [...walks.values()].map(({ rows, result }) => {
    return { ...result, state: result.state === 'pruned' ? result.state : stateOf(rows, result) }
  })
}

/** When a row about removals is itself removed, a later row repeats it: nothing may count twice. */
function removedByChain(walks: Walk[]): Map<string, PrunedRows> {
  const removed = new Map<string, PrunedRows>()
  const all = walks.flatMap(({ rows }) => rows.flatMap((row) => (row.kind === 'pruned' ? (row.removed ?? []) : [])))
  for (const each of all.sort((a, b) => a.fromSeq - b.fromSeq || b.rows - a.rows)) {
    const known = removed.get(each.chain)
    if (!known) removed.set(each.chain, each)
    else if (each.fromSeq > known.toSeq) removed.set(each.chain, joinPruned(known, each))
  }
  return removed
}

function remember(heads: Map<string, Map<number, string>>, { chain, seq, hash }: ChainHead): void {
  const known = heads.get(chain) ?? new Map<number, string>()
  heads.set(chain, known.set(seq, hash))
}

function walkChain(chain: string, files: AuditFile[]): Walk {
  const result: VerifiedChain = { chain, state: 'intact', rows: 0, problems: [] }
  const rows: Row[] = []
  let last: Row | undefined
  for (const { path } of files) {
    const text = readFileSync(path, 'utf8')
    const lines = text.split('\n')
    if (lines.pop() !== '') lines.push(text.slice(text.lastIndexOf('\n') + 1))
    for (const [at, line] of lines.entries()) {
      const problem = (reason: string) => result.problems.push({ file: basename(path), line: at + 1, reason })
      const row = openRow(line)
      if (!row) problem(text.endsWith('\n') || at < lines.length - 1 ? 'this row was edited' : 'this row is cut off')
      else {
        const reason = linkProblem(chain, last, row)
        if (reason) problem(reason)
        rows.push(row)
        last = row
      }
    }
  }
  result.rows = rows.length
  if (last) result.head = { chain, seq: last.seq, hash: last.hash }
  return { rows, result }
}

function linkProblem(chain: string, before: Row | undefined, row: Row): string | undefined {
  if (row.chain !== chain) return `this row belongs to the chain ${row.chain}`
  if (!before || (row.seq === before.seq + 1 && row.prev === before.hash)) return undefined
  if (row.seq <= before.seq) return `row ${row.seq} comes after row ${before.seq}`
  if (row.seq > before.seq + 1) return `rows ${before.seq + 1} to ${row.seq - 1} are missing before this one`
  return 'this row does not follow from the one before'
}

/** A chain must begin with its first row, or where another chain records that older files were removed. */
function checkBeginning([first]: Row[], result: VerifiedChain, pruned: Map<number, string> | undefined): void {
  if (!first || (first.seq === 0 && first.kind === 'start' && first.prev === FIRST_PREV)) return
  if (first.seq > 0 && pruned?.get(first.seq - 1) === first.prev) return
  const reason = first.seq === 0 ? 'this is not a first row' : `rows 0 to ${first.seq - 1} are missing before this one`
  result.problems.unshift({ file: '', line: 1, reason })
}

function checkFollowed(walks: Map<string, Walk>, head: ChainHead, pruned: Map<number, string> | undefined): void {
  const { chain, seq, hash } = head
  const wasPruned = [...(pruned?.keys() ?? [])].some((until) => until >= seq)
  const walk = walks.get(chain)
  if (!walk) {
    if (wasPruned) return
    const reason = `the chain is gone; it had ${seq + 1} rows`
    walks.set(chain, {
      rows: [],
      result: { chain, state: 'broken', rows: 0, problems: [{ file: '', line: 0, reason }] }
    })
    return
  }
  const row = walk.rows.find((each) => each.seq === seq)
  if (row ? row.hash === hash : wasPruned) return
  const reason = row
    ? `row ${seq} differs from what a later chain recorded`
    : `row ${seq} is missing; a later chain recorded it`
  walk.result.problems.push({ file: '', line: 0, reason })
}

function stateOf(rows: Row[], { problems }: VerifiedChain): VerifiedChain['state'] {
  const [first] = rows
  if (problems.length > 0 || !first) return 'broken'
  if (rows.at(-1)?.kind === 'stop') return 'intact'
  // Without its first row this is a long chain whose older files were removed; whether it is still written is unknown.
  return first.kind !== 'start' || mayLive(first) ? 'running' : 'unclosed'
}
