import { hash as digest } from 'node:crypto'
import type { AuditOutcome } from '../../contract/audit.ts'
import { escapeJson } from '../../contract/hidden-characters.ts'
import type { Caller } from '../calls/caller.ts'

export interface Candidate {
  server: string
  tool: string
  confidence: number
}

/** The last row of a chain, or of a part of one, as another chain remembers it. */
export interface ChainHead {
  chain: string
  seq: number
  hash: string
}

/** The rows of a file that was removed. */
export interface PrunedRows {
  chain: string
  fromSeq: number
  toSeq: number
  fromAt: string
  toAt: string
  rows: number
  /** How many of them were calls. */
  calls: number
}

export interface Who {
  /** `local`, or a hash. */
  owner: string
  door: Caller['door']
  client?: string | undefined
  session?: string | undefined
}

/** What a row says; place and seal come on top. */
export type RowBody =
  /** The first of a chain: `follows` are the heads of those found in the folder, which can't be shortened unseen from then on. */
  | { kind: 'start'; pid: number; born: string; host: string; version: string; follows: ChainHead[] }
  | { kind: 'continue'; file: number }
  | {
      kind: 'route'
      who: Who
      by: string
      /** Only where arguments are kept too. */
      request?: string | undefined
      requestHash?: string | undefined
      requestLength?: number | undefined
      candidates: Candidate[]
      outcome: AuditOutcome
      server?: string | undefined
      tool?: string | undefined
      ms: number
      code?: string | undefined
    }
  | { kind: 'begin'; who: Who; server: string; tool: string; argumentsHash: string; arguments?: string | undefined }
  /** `call` is the `seq` of its `begin`. */
  | {
      kind: 'end'
      call: number
      /** Where another server than the chosen one answered. */
      server?: string | undefined
      outcome: AuditOutcome
      code?: string | undefined
      attempts?: number | undefined
      ms: number
    }
  /** For a time nothing could be written, and so many were refused because of it. */
  | { kind: 'gap'; since: string; refused: number; reason: string }
  /** Files removed because of their age, or because all together were too large. */
  | { kind: 'pruned'; heads: ChainHead[]; removed?: PrunedRows[] | undefined }
  | { kind: 'stop'; unfinished: number }

export type Row = RowBody & { chain: string; seq: number; at: string; prev: string; hash: string }

export const FIRST_PREV = ''
const SEAL = /,"hash":"([0-9a-f]{64})"\}$/

/** One line, without its end. The hash is of the line's own text without the hash, so no two readings of it are possible. */
export function sealRow(
  place: { chain: string; seq: number; at: string; prev: string },
  body: RowBody
): { line: string; hash: string } {
  const { chain, seq, at, prev } = place
  // Whoever reads the file as it is must not miss a character either.
  const text = escapeJson(JSON.stringify({ chain, seq, at, ...body, prev }))
  const hash = digest('sha256', text, 'hex')
  return { line: `${text.slice(0, -1)},"hash":"${hash}"}`, hash }
}

/** undefined: the line is not what was written. */
export function openRow(line: string): Row | undefined {
  const seal = SEAL.exec(line)?.[1]
  if (seal === undefined) return undefined
  const text = `${line.replace(SEAL, '')}}`
  return digest('sha256', text, 'hex') === seal ? parseRow(line) : undefined
}

/** Without a look at the seal. */
export function parseRow(line: string): Row | undefined {
  try {
    const row: unknown = JSON.parse(line)
    return isRow(row) ? row : undefined
  } catch {
    return undefined
  }
}

function isRow(value: unknown): value is Row {
  if (typeof value !== 'object' || value === null) return false
  const { chain, seq, at, kind, prev, hash }: Partial<Record<string, unknown>> = { ...value }
  return [chain, at, kind, prev, hash].every((item) => typeof item === 'string') && Number.isSafeInteger(seq)
}
