import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { KnownSecrets } from '../lib/known-secrets.ts'
import { type Audit, type AuditOptions, openAudit } from './audit.ts'
import { auditFileName, listAuditFiles } from './audit-files.ts'
import { FIRST_PREV, type RowBody, sealRow } from './audit-row.ts'
import { readAudit } from './read-audit.ts'
import { verifyAudit } from './verify-audit.ts'

const caller = { owner: 'local', door: 'http' } as const
const SENTENCE = 'tell my lawyer that the house in Vienna is sold'

let dir: string
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

function open(more: Partial<AuditOptions> = {}): Audit {
  const usual = { version: '1', maxBytes: 60_000, maxRouteBytes: 60_000, maxAgeMs: 1e9, withArguments: false }
  return openAudit({ dir, ...usual, maxFileBytes: 10_000, secrets: new KnownSecrets(), ...more })
}

const call = (audit: Audit, tool: string) =>
  audit.begin({ caller, server: 'bank', tool, args: {} })({ outcome: 'ok', attempts: 1 })
const find = (audit: Audit, request = SENTENCE) =>
  audit.decided({ caller, by: 'find_tool', request, candidates: [], outcome: 'abstained', ms: 1 })
const bytesOf = (family: string) =>
  listAuditFiles([dir]).reduce((sum, file) => sum + (file.family === family ? file.bytes : 0), 0)
const problems = () => verifyAudit([dir]).flatMap((chain) => chain.problems)
const everything = () =>
  readdirSync(dir)
    .map((name) => readFileSync(join(dir, name), 'utf8'))
    .join('')

// Checked: if they share one limit, the call is gone.
it('keeps a call, however many requests are routed after it', async () => {
  const audit = open()
  call(audit, 'transfer')
  for (let i = 0; i < 3000; i++) find(audit)
  await audit.close()
  const { entries } = readAudit([dir], { limit: 10, tool: 'transfer', maxLookedAt: 1e6 })
  expect(entries).toMatchObject([{ kind: 'call', server: 'bank', outcome: 'ok' }])
  expect(bytesOf('routes')).toBeLessThan(75_000)
  expect(problems()).toEqual([])
})

it('records what was pruned; rows that someone else removes are reported as missing', async () => {
  const audit = open()
  for (let i = 0; i < 600; i++) call(audit, `t${i}`)
  await audit.close()
  const chain = verifyAudit([dir]).find(({ pruned }) => pruned)
  expect(chain?.problems).toEqual([])
  const pruned = chain?.pruned
  // Two rows for each call, the first row of the chain, and those about files.
  expect(pruned).toMatchObject({ fromSeq: 0, fromAt: expect.any(String), toAt: expect.any(String) })
  expect(pruned?.rows).toBe((pruned?.toSeq ?? 0) + 1)
  const kept = readAudit([dir], { limit: 1000 }).entries.length
  expect(pruned?.calls).toBe(600 - kept)
  expect((pruned?.rows ?? 0) + (chain?.rows ?? 0)).toBe((chain?.head?.seq ?? 0) + 1)
  const [oldest] = listAuditFiles([dir])
  rmSync(oldest?.path ?? '')
  expect(problems()).toMatchObject([{ reason: expect.stringMatching(/^rows 0 to \d+ are missing/) }])
})

it('names chains that were removed completely, even after many starts', async () => {
  for (let i = 0; i < 40; i++) {
    const audit = open({ maxFileBytes: 2000, maxBytes: 8000 })
    for (let j = 0; j < 10; j++) call(audit, `t${j}`)
    await audit.close()
  }
  const chains = verifyAudit([dir])
  expect(chains.flatMap((chain) => chain.problems)).toEqual([])
  const gone = chains.filter(({ state }) => state === 'pruned')
  expect(gone.length).toBeGreaterThan(20)
  const rows = chains.reduce((sum, { pruned }) => sum + (pruned?.calls ?? 0), 0)
  expect(rows + readAudit([dir], { limit: 1000 }).entries.length).toBe(400)
})

it('records a hash and a length of requests, and their text only if arguments are recorded', async () => {
  const quiet = open()
  find(quiet)
  await quiet.close()
  expect(everything()).not.toContain('lawyer')
  const [entry] = readAudit([dir], { limit: 1 }).entries
  expect(entry).toMatchObject({ requestLength: SENTENCE.length, requestHash: expect.stringMatching(/^[0-9a-f]{64}$/) })
  const open_ = open({ withArguments: true })
  find(open_)
  await open_.close()
  // Both may be of the same millisecond, so either may be the newest.
  const { entries } = readAudit([dir], { limit: 2 })
  expect(entries.flatMap(({ request }) => request ?? [])).toEqual([SENTENCE])
})

it('reads and verifies the single chain of an earlier version, and counts it as calls', async () => {
  const chain = '0011223344556677'
  const who = { owner: 'local', door: 'stdio' } as const
  const bodies: RowBody[] = [
    { kind: 'start', pid: 1, born: 'x', host: 'h', version: '0', follows: [] },
    { kind: 'pruned', heads: [{ chain: 'ffffffffffffffff', seq: 3, hash: 'a' }] },
    { kind: 'route', who, by: 'execute', request: 'old words', candidates: [], outcome: 'chosen', ms: 1 },
    { kind: 'begin', who, server: 's', tool: 't', argumentsHash: 'b' },
    { kind: 'end', call: 3, outcome: 'ok', ms: 1 },
    { kind: 'stop', unfinished: 0 }
  ]
  let prev = FIRST_PREV
  const lines = bodies.map((body, seq) => {
    const { line, hash } = sealRow({ chain, seq, at: `2026-01-01T00:00:0${seq}.000Z`, prev }, body)
    prev = hash
    return `${line}\n`
  })
  writeFileSync(join(dir, auditFileName(chain, 1)), lines.join(''))
  const audit = open()
  for (let i = 0; i < 1000; i++) find(audit)
  await audit.close()
  expect(verifyAudit([dir]).find((each) => each.chain === chain)).toMatchObject({
    state: 'intact',
    rows: 6,
    problems: []
  })
  const { entries } = readAudit([dir], { limit: 5000, since: 0, maxLookedAt: 1e6 })
  expect(entries.slice(-2)).toMatchObject([{ tool: 't', outcome: 'ok' }, { request: 'old words' }])
})

// Checked: if the entries before the page count too, the fourth page is the third one again, for ever.
it('goes on through a log that is longer than what one page may look at', async () => {
  const audit = open()
  call(audit, 'oldest')
  for (let i = 0; i < 40; i++) call(audit, 'other')
  await audit.close()
  let before: string | undefined
  for (let pages = 0; pages < 10; pages++) {
    const { entries, next } = readAudit([dir], { limit: 10, tool: 'oldest', maxLookedAt: 12, before })
    if (entries.length > 0) return expect(entries).toMatchObject([{ tool: 'oldest' }])
    before = next ?? undefined
  }
  expect.fail('The oldest entry was never reached.')
})
