import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { AUDIT_OUTCOMES, type AuditEntry, type AuditOutcome } from '../../contract/audit.ts'
import { escapeJson, revealPlainly, terminalLine } from '../../contract/hidden-characters.ts'
import type { PrunedRows } from '../audit/audit-row.ts'
import { type AuditFilter, readAudit } from '../audit/read-audit.ts'
import { type VerifiedChain, verifyAudit } from '../audit/verify-audit.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import { plural } from '../lib/plural.ts'
import type { CommandInput } from './command.ts'
import { usageError } from './usage-error.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100_000
const LOOK_MS = 300
const LOOK_IN_BUCKET_MS = 2000
const FOLLOWED = 1000
const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export interface AuditSource {
  /** The log of this machine. */
  dir: string
  /** The logs of all instances, if they share a bucket. */
  shared?: {
    copies: string
    where: string
    /** Reads what is new in the bucket. */
    sync(): Promise<void>
    verify(): Promise<VerifiedChain[]>
  }
}

export async function showAudit(source: AuditSource, action: string, flags: CommandInput['flags']): Promise<number> {
  const json = flags.json === true
  const { dir, shared } = source
  if (action === 'verify') return verify(source, json)
  if (action !== 'show') throw usageError(`There is no "audit ${action}"`, 'audit')
  const filter = readFilter(flags)
  await refresh(source)
  const { entries } = readAudit(foldersOf(source), filter)
  if (!json && entries.length === 0) {
    const isFiltered = ['server', 'tool', 'outcome', 'since'].some((name) => flags[name] !== undefined)
    process.stderr.write(`The audit log in ${shared?.where ?? dir} has no ${isFiltered ? 'matching ' : ''}rows.\n`)
  }
  print(entries.toReversed(), json)
  if (flags.follow === true) await follow(source, filter, json, entries)
  return 0
}

function foldersOf({ dir, shared }: AuditSource): string[] {
  return shared ? [dir, shared.copies] : [dir]
}

/** Without the bucket, the rows of this machine and those that were read before are still worth showing. */
async function refresh({ shared }: AuditSource, isLate = false): Promise<void> {
  await shared?.sync().catch((error: unknown) => {
    const note = `Rows of other instances may be missing: ${terminalLine(messageOf(error))}\n`
    if (!isLate) process.stderr.write(note)
  })
}

async function verify({ dir, shared }: AuditSource, json: boolean): Promise<number> {
  // A missing log is not a valid log.
  if (!shared && !existsSync(dir)) throw new AppError('not-found', 'no_audit', `There is no audit log in ${dir}.`)
  const chains = shared ? await shared.verify() : verifyAudit([dir])
  const lines = chains.flatMap(({ chain, state, rows, problems, pruned }) => [
    `${state.padEnd(9)} ${chain} ${plural(rows, 'row')}`,
    ...(pruned ? [`          ${prunedText(pruned)}`] : []),
    ...problems.map(({ file, line, reason }) => `          ${file === '' ? '' : `${file}:${line}: `}${reason}`)
  ])
  const isBroken = chains.some(({ state }) => state === 'broken')
  const text = json
    ? chains.map((chain) => escapeJson(JSON.stringify(chain)))
    : [...lines, `${plural(chains.length, 'chain')} in ${shared?.where ?? dir}`]
  process.stdout.write(text.map((line) => `${revealPlainly(line, 'columns')}\n`).join(''))
  return isBroken ? 1 : 0
}

async function follow(source: AuditSource, filter: AuditFilter, json: boolean, shown: AuditEntry[]): Promise<never> {
  const printed = new Set(shown.map(({ id }) => id))
  const since = Date.now() - LOOK_MS
  for (;;) {
    await delay(source.shared ? LOOK_IN_BUCKET_MS : LOOK_MS)
    await refresh(source, true)
    const { entries } = readAudit(foldersOf(source), { ...filter, since: filter.since ?? since, limit: FOLLOWED })
    // Print each call once, when it has ended.
    const fresh = entries
      .filter(({ id, outcome }) => outcome !== 'running' && outcome !== 'waiting' && !printed.has(id))
      .toReversed()
    for (const { id } of fresh) printed.add(id)
    print(fresh, json)
  }
}

function print(entries: AuditEntry[], json: boolean): void {
  process.stdout.write(entries.map((entry) => `${json ? escapeJson(JSON.stringify(entry)) : row(entry)}\n`).join(''))
}

function row(entry: AuditEntry): string {
  const { at, door, kind, by, server, tool, outcome, code, attempts, definitionChanged, ms, candidates } = entry
  const target = server === undefined ? (by ?? '') : `${server}/${tool}`
  const end = `${outcome}${code === undefined ? '' : ` (${code})`}${(attempts ?? 1) > 1 ? ` ${attempts} attempts` : ''}${definitionChanged ? ' changed tool' : ''}`
  const best = candidates?.map((each) => `${each.server}/${each.tool} ${each.confidence}`).slice(0, 3)
  const asked = [requestText(entry), best?.join(', ') ?? '']
  const columns = [
    at,
    door.padEnd(5),
    kind.padEnd(5),
    target.padEnd(32),
    end.padEnd(24),
    `${ms ?? '-'} ms`.padStart(12)
  ]
  // Names are hostile: they must not control the terminal, hide characters, or start another row.
  const shown = [...columns, ...asked.map((text) => revealPlainly(text))].join(' ').trimEnd()
  return revealPlainly(shown, 'columns').replaceAll('\n', '⟨U+000A⟩')
}

function requestText({ request, requestHash, requestLength }: AuditEntry): string {
  if (request !== undefined) return JSON.stringify(request.slice(0, 80))
  return requestHash === undefined ? '' : `request ${requestHash.slice(0, 12)} (${requestLength} characters)`
}

function prunedText({ rows, calls, fromSeq, toSeq, fromAt, toAt }: PrunedRows): string {
  const limits = 'AUDIT_MAX_MB, AUDIT_ROUTES_MAX_MB, RETENTION_DAYS'
  return `pruned: ${plural(rows, 'row')}, with ${plural(calls, 'call')} (seq ${fromSeq} to ${toSeq}, ${fromAt} to ${toAt}), by ${limits}`
}

function readFilter(flags: CommandInput['flags']): AuditFilter {
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined)
  const limit = Number(text('limit') ?? DEFAULT_LIMIT)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw usageError(`--limit must be a whole number from 1 to ${MAX_LIMIT}`, 'audit')
  const outcome = text('outcome')
  if (outcome !== undefined && !isOutcome(outcome))
    throw usageError(`--outcome must be one of ${AUDIT_OUTCOMES.join(', ')}`, 'audit')
  const since = readSince(text('since'))
  return { limit, server: text('server'), tool: text('tool'), outcome, since, maxLookedAt: Number.POSITIVE_INFINITY }
}

function isOutcome(text: string): text is AuditOutcome {
  return AUDIT_OUTCOMES.some((outcome) => outcome === text)
}

function readSince(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? []
  const at = count === undefined ? Date.parse(text) : Date.now() - Number(count) * (UNITS[unit] ?? 0)
  if (Number.isNaN(at))
    throw usageError('--since must be a time such as 2026-01-31T10:00 or an age such as 2h', 'audit')
  return at
}
