import { hash as digest } from 'node:crypto'
import type { AuditOutcome } from '../../contract/audit.ts'
import { escapeJson } from '../../contract/hidden-characters.ts'
import type { Caller } from '../calls/caller.ts'

interface Candidate {
  server: string
  tool: string
  confidence: number
}

/** The last row of a chain, or of a part of one, as another chain records it. */
export interface ChainHead {
  chain: string
  seq: number
  hash: string
}

/** The rows of a removed file. */
export interface PrunedRows {
  chain: string
  fromSeq: number
  toSeq: number
  fromAt: string
  toAt: string
  rows: number
  /** Number of calls among them. */
  calls: number
}

export interface Who {
  /** `local`, or a hash. */
  owner: string
  door: Caller['door']
  client?: string | undefined
  session?: string | undefined
}

export interface RouteFacts {
  /** The tool of the gateway that was called. */
  by: 'find_tool' | 'execute'
  candidates: Candidate[]
  outcome: AuditOutcome
  server?: string | undefined
  tool?: string | undefined
  ms: number
  code?: string | undefined
}

/** The content of a row, without its position and its hash. */
export type RowBody =
  /** The first row of a chain. `follows` lists the heads of the chains in the folder, so that cutting one short is noticed later. */
  | { kind: 'start'; pid: number; born: string; host: string; version: string; follows: ChainHead[] }
  | { kind: 'continue'; file: number }
  | (RouteFacts & {
      kind: 'route'
      who: Who
      /** Recorded only if arguments are recorded too. */
      request?: string | undefined
      requestHash?: string | undefined
      requestLength?: number | undefined
    })
  | { kind: 'begin'; who: Who; server: string; tool: string; argumentsHash: string; arguments?: string | undefined }
  /** `call` is the `seq` of its `begin`. */
  | {
      kind: 'end'
      call: number
      /** Set if another server than the chosen one answered. */
      server?: string | undefined
      outcome: AuditOutcome
      code?: string | undefined
      attempts?: number | undefined
      definitionChanged?: true | undefined
      ms: number
    }
  /** A person is asked about this call, and it runs after they have approved it. */
  | { kind: 'waits' | 'runs'; call: number }
  /** Nothing could be written for a while; `refused` calls were refused because of it. */
  | { kind: 'gap'; since: string; refused: number; reason: string }
  /** Files that were removed because of their age or the size limit. */
  | { kind: 'pruned'; heads: ChainHead[]; removed?: PrunedRows[] | undefined }
  | { kind: 'stop'; unfinished: number }

export type Row = RowBody & { chain: string; seq: number; at: string; prev: string; hash: string }

export const FIRST_PREV = ''
const SEAL = /,"hash":"([0-9a-f]{64})"\}$/

/** Builds one line, without the newline. The hash covers the line's own text without the hash, so there is only one way to read it. */
export function sealRow(
  place: { chain: string; seq: number; at: string; prev: string },
  body: RowBody
): { line: string; hash: string } {
  const { chain, seq, at, prev } = place
  // Escaped, so that hidden characters show when someone reads the raw file.
  const text = escapeJson(JSON.stringify({ chain, seq, at, ...body, prev }))
  const hash = digest('sha256', text, 'hex')
  return { line: `${text.slice(0, -1)},"hash":"${hash}"}`, hash }
}

/** Returns undefined if the line's hash does not match its text. */
export function openRow(line: string): Row | undefined {
  const seal = SEAL.exec(line)?.[1]
  if (seal === undefined) return undefined
  const text = `${line.replace(SEAL, '')}}`
  return digest('sha256', text, 'hex') === seal ? parseRow(line) : undefined
}

/** Does not check the hash. */
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
