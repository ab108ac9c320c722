/**
 * The audit log: who called what, which tool was chosen, and how it ended. Owns what the rows say and that they hold no secret;
 * the writer owns the chain and its files. Invariant: a call is recorded before it is made, or it is not made.
 */

import { hash as digest } from 'node:crypto'
import { setImmediate as nextRound } from 'node:timers/promises'
import type { AuditOutcome } from '../../contract/audit.ts'
import type { Caller } from '../calls/caller.ts'
import type { ToolObserver } from '../calls/tool-observer.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import type { KnownSecrets } from '../lib/known-secrets.ts'
import type { RouteFacts, RowBody, Who } from './audit-row.ts'
import { AuditWriter, type AuditWriterOptions } from './audit-writer.ts'
import type { Removal } from './prune-list.ts'

interface CallRecord {
  caller: Caller
  server: string
  tool: string
  args: unknown
}

export interface CallEnd {
  outcome: AuditOutcome
  code?: string | undefined
  /** Set if another server than the chosen one answered. */
  server?: string | undefined
  /** Unknown for a failed call. */
  attempts?: number | undefined
  /** The tool's definition had changed, and nobody had accepted the change. */
  definitionChanged?: true | undefined
  /** Time from sending the call to its result, without the wait for approval; undefined if it was never sent. */
  calledMs?: number | undefined
}

export interface RouteRecord extends RouteFacts {
  caller: Caller
  request?: string | undefined
}

/** Records the end of a call. */
export interface OpenCall {
  (end: CallEnd): void
  /** A person is asked for approval. */
  waits(): void
  /** They have approved it. Does nothing if nobody was asked. */
  runs(): void
}

export interface Audit {
  /**
   * Records the call before it returns, or throws `audit_unavailable`: then the call must not be made. Call the result once, at
   * the end.
   */
  begin(call: CallRecord): OpenCall
  /** Like `begin`, but under load one write to disk records all calls of an event loop round. */
  beginTogether(call: CallRecord): Promise<OpenCall>
  /** Throws like `begin`. */
  decided(route: RouteRecord): void
  /** Records that files are about to be removed from the bucket. Throws like `begin`. */
  removing(removal: Pick<Removal, 'heads' | 'removed'>): void
  /** Why nothing can be recorded at the moment. */
  readonly problem: string | undefined
  /** Waits briefly for calls that are just ending. */
  close(): Promise<void>
}

export interface AuditOptions extends Omit<AuditWriterOptions, 'family'> {
  /** Limit for the files of routing decisions; `maxBytes` is for calls. */
  maxRouteBytes: number
  secrets: KnownSecrets
  /** Whether rows contain the arguments and requests themselves, in addition to their hashes. */
  withArguments: boolean
  observer?: ToolObserver | undefined
}

const MAX_NAME = 200
const MAX_REQUEST = 4000
const MAX_ARGUMENTS = 10_000
const MAX_CANDIDATES = 10
const CLOSING_ROUNDS = 50
/** With fewer calls at a time, waiting for others would only cost time. */
const BUSY = 4

export function openAudit(options: AuditOptions): Audit {
  const writer = new AuditWriter({ ...options, family: 'calls' })
  const routes = new AuditWriter({ ...options, family: 'routes', maxBytes: options.maxRouteBytes })
  const { secrets, withArguments, observer } = options
  let open = 0
  const clean = (text: string, max: number) => secrets.redact(text).slice(0, max).toWellFormed()
  const cleanName = (name: string | undefined) => name && clean(name, MAX_NAME)
  const who = (caller: Caller): Who => {
    const { door, client, session } = caller
    return { owner: auditOwner(caller.owner), door, client: cleanName(client), session }
  }
  const requestFacts = (request: string | undefined) => ({
    request: request !== undefined && withArguments ? clean(request, MAX_REQUEST) : undefined,
    requestHash: request === undefined ? undefined : digest('sha256', request, 'hex'),
    requestLength: request?.length
  })
  const beginRow = ({ caller, server, tool, args }: CallRecord): RowBody => {
    const text = canonicalJson(args)
    return {
      kind: 'begin',
      who: who(caller),
      server,
      tool: clean(tool, MAX_NAME),
      argumentsHash: digest('sha256', text, 'hex'),
      arguments: withArguments ? clean(text, MAX_ARGUMENTS) : undefined
    }
  }
  const opened = (call: number, record: CallRecord, began: number): OpenCall =>
    openCall(writer, { ...record, call }, ({ outcome, server = record.server, attempts = 1, calledMs: ms }) => {
      open--
      observer?.called?.({ server, door: record.caller.door, outcome, ms, attempts })
      return since(began)
    })
  return {
    begin(record) {
      const began = performance.now()
      const call = writer.write(beginRow(record))
      open++
      return opened(call, record, began)
    },
    async beginTogether(record) {
      if (open < BUSY) return this.begin(record)
      const began = performance.now()
      open++
      try {
        return opened(await writer.writeTogether(beginRow(record)), record, began)
      } catch (error) {
        open--
        throw error
      }
    },
    decided({ caller, by, request, candidates, outcome, server, tool, ms, code }) {
      routes.write({
        kind: 'route',
        who: who(caller),
        by,
        ...requestFacts(request),
        candidates: candidates.slice(0, MAX_CANDIDATES),
        outcome,
        ...{ server: cleanName(server), tool: cleanName(tool) },
        ms,
        code
      })
      observer?.routed?.(by, outcome)
    },
    removing: ({ heads, removed }) => void writer.write({ kind: 'pruned', heads, removed }),
    get problem() {
      return writer.problem ?? routes.problem
    },
    async close() {
      for (let round = 0; open > 0 && round < CLOSING_ROUNDS; round++) await nextRound()
      writer.close(open)
      routes.close(0)
    }
  }
}

/** `call` is the `seq` of its first row; `onEnd` returns how long it took. */
function openCall(
  writer: AuditWriter,
  { call, server: chosen }: CallRecord & { call: number },
  onEnd: (end: CallEnd) => number
): OpenCall {
  let isWaiting = false
  const end = (ended: CallEnd) => {
    const { outcome, code, attempts, definitionChanged } = ended
    const server = ended.server === chosen ? undefined : ended.server
    writer.writeSoon({ kind: 'end', call, server, outcome, code, attempts, definitionChanged, ms: onEnd(ended) })
  }
  return Object.assign(end, {
    waits() {
      if (!isWaiting) writer.writeSoon({ kind: 'waits', call })
      isWaiting = true
    },
    runs() {
      if (isWaiting) writer.writeSoon({ kind: 'runs', call })
      isWaiting = false
    }
  })
}

/** SHA-256 of the arguments, whatever the order of their names. */
export function argumentsHash(args: unknown): string {
  return digest('sha256', canonicalJson(args), 'hex')
}

/** An owner is identified by a secret, which must not be in any row. */
export function auditOwner(owner: string): string {
  return owner === 'local' ? owner : digest('sha256', `audit:${owner}`, 'hex').slice(0, 16)
}

export function since(began: number): number {
  return Math.round((performance.now() - began) * 1000) / 1000
}
