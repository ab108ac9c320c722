import { readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { eventually } from '../../../tests/support/eventually.ts'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { KnownSecrets } from '../../lib/known-secrets.ts'
import { silentLogger } from '../../lib/logger.ts'
import { FakeObjectService } from '../../storage/objects/fake-object-service.ts'
import { openTestObjects } from '../../storage/objects/fake-object-store.ts'
import { contentOf, type ObjectStore } from '../../storage/objects/object-store.ts'
import { type Audit, type AuditOptions, openAudit } from '../audit.ts'
import { FIRST_PREV, type RowBody, sealRow } from '../audit-row.ts'
import { readAudit } from '../read-audit.ts'
import { verifyAudit } from '../verify-audit.ts'
import { AuditMirror } from './audit-mirror.ts'
import { coverOf, listSegments, segmentOf, unbrokenEnd } from './audit-segments.ts'
import { AuditShipper, type ShipperOptions } from './audit-shipper.ts'
import { pruneBucket } from './prune-bucket.ts'
import { verifyBucket } from './verify-bucket.ts'

/** For a service that never answers. */
const SHORT = { attemptMs: 1000, totalMs: 60 }
const DAY_MS = 86_400_000
const MANY = 1e9
let service: FakeObjectService
let objects: ObjectStore
let root: string

beforeEach(async () => {
  root = temporaryFolder()
  service = await new FakeObjectService().start()
  objects = openTestObjects({ endpoint: service.endpoint })
})
afterEach(async () => {
  objects.close()
  await service.stop()
  discard(root)
})

const prefix = 'p/'
const keys = () => [...service.objects.keys()]

/** One instance with a folder of its own. */
function instance(name: string, more: Partial<ShipperOptions> = {}, writing: Partial<AuditOptions> = {}) {
  const dir = join(root, name, 'audit')
  const options = { dir, objects, prefix, maxLagMs: MANY, maxLagBytes: MANY, logger: silentLogger, ...more }
  const shipper = new AuditShipper(options)
  const mirror = new AuditMirror({ objects, prefix, dir: join(root, name, 'mirror'), own: dir, maxBytes: MANY })
  const audit = openAudit({
    ...{ dir, version: '1', maxBytes: MANY, maxRouteBytes: MANY, maxAgeMs: MANY, withArguments: false },
    ...{ secrets: new KnownSecrets(), others: [mirror.dir] },
    refusal: () => shipper.refusal,
    isCopied: (path, bytes) => shipper.isCopied(path, bytes),
    ...writing
  })
  return { dir, shipper, mirror, audit, verify: () => verified(dir) }
}

const verified = (own: string) => verifyBucket({ objects, prefix, own, work: join(root, 'verify') })

function call(audit: Audit, tool: string): void {
  audit.begin({ caller: { owner: 'local', door: 'stdio' }, server: 's', tool, args: {} })({
    outcome: 'ok',
    attempts: 1
  })
}

const works = (job: Promise<unknown>) =>
  job.then(
    () => true,
    () => false
  )

const tools = (dirs: string[]) => readAudit(dirs, { limit: 1000 }).entries.map(({ tool }) => tool)

it('shows and verifies the calls of all instances on each of them', async () => {
  const [a, b] = [instance('a'), instance('b')]
  call(a.audit, 'one')
  call(b.audit, 'two')
  await Promise.all([a.shipper.ship(), b.shipper.ship()])
  call(a.audit, 'three')
  await a.audit.close()
  await a.shipper.stop()
  await b.mirror.sync()
  expect(tools([b.dir, b.mirror.dir]).toSorted()).toEqual(['one', 'three', 'two'])
  expect((await b.verify()).map(({ state, problems }) => [state, problems]).toSorted()).toEqual([
    ['intact', []],
    ['running', []]
  ])
  // A new machine has no file of theirs.
  expect((await verified(join(root, 'nothing'))).map(({ rows }) => rows).toSorted()).toEqual([3, 6])
  expect(readdirSync(root)).not.toContain('verify')
})

it('finds what was changed, cut off or removed in the bucket', async () => {
  const a = instance('a')
  for (const tool of ['one', 'two', 'three']) {
    call(a.audit, tool)
    await a.shipper.ship()
  }
  await a.audit.close()
  await a.shipper.ship()
  const [first = '', second = ''] = keys().toSorted()
  const states = async (own = join(root, 'nothing')) => (await verified(own)).map(({ state }) => state)
  expect(await states()).toEqual(['intact'])
  const kept = service.objects.get(second)
  service.objects.delete(second)
  expect(await states()).toEqual(['broken'])
  // The machine that wrote it still has it.
  expect(await states(a.dir)).toEqual(['broken'])
  service.objects.set(second, kept ?? { bytes: Buffer.alloc(0), modifiedAt: 0 })
  const edited = Buffer.from(String(service.objects.get(first)?.bytes).replace('"one"', '"uno"'))
  service.objects.set(first, { bytes: edited, modifiedAt: 0 })
  expect(await states()).toEqual(['broken'])
  expect((await verified(a.dir))[0]?.problems[0]?.reason).toMatch(/differs from the file|was edited/)
})

// Checked: if the files are not compared, the forged chain has no problem.
it('finds a forged chain in the bucket with the file of the machine that wrote it', async () => {
  const a = instance('a')
  call(a.audit, 'one')
  await a.audit.close()
  await a.shipper.stop()
  const [file = ''] = readdirSync(a.dir)
  const chain = file.slice(0, 16)
  const start: RowBody = { kind: 'start', pid: 1, born: '', host: 'h', version: '1', follows: [] }
  const { line } = sealRow({ chain, seq: 0, at: new Date().toISOString(), prev: FIRST_PREV }, start)
  service.objects.clear()
  await objects.put(segmentOf(prefix, file, 0, line.length + 1).key, contentOf(Buffer.from(`${line}\n`)))
  expect((await verified(join(root, 'nothing')))[0]?.problems).toEqual([])
  expect((await verified(a.dir))[0]?.problems[0]?.reason).toMatch(/differs from the file/)
})

// Checked: if a new chain notes only the chains of its own folder, nothing is reported.
it('notices that the end of another chain was removed, once a later chain has seen it', async () => {
  const [a, b] = [instance('a'), instance('b')]
  call(a.audit, 'one')
  await a.shipper.ship()
  await b.mirror.sync()
  call(b.audit, 'two')
  await b.shipper.ship()
  for (const key of keys()) if (readdirSync(a.dir).some((name) => key.includes(name))) service.objects.delete(key)
  expect((await b.verify()).find(({ state }) => state === 'broken')?.problems[0]?.reason).toMatch(/chain is gone/)
})

it('keeps few objects, and goes on where an earlier process ended', async () => {
  const a = instance('a')
  for (let at = 0; at < 70; at++) {
    call(a.audit, `t${at}`)
    await a.shipper.ship()
  }
  expect(keys().length).toBeLessThan(35)
  await a.audit.close()
  await a.shipper.ship()
  const again = new AuditShipper({
    ...instance('a'),
    objects,
    prefix,
    maxLagMs: MANY,
    maxLagBytes: MANY,
    logger: silentLogger
  })
  const puts = service.requests.length
  await again.ship()
  expect(service.requests.slice(puts).filter(({ method }) => method === 'PUT')).toEqual([])
  const next = instance('a')
  call(next.audit, 'last')
  await next.audit.close()
  await again.stop()
  expect((await verified(join(root, 'nothing'))).map(({ state, rows }) => [state, rows]).toSorted()).toEqual([
    ['intact', 142],
    ['intact', 4]
  ])
})

it('refuses calls when the bucket is away for too long, says so, and goes on by itself', async () => {
  const impatient = openTestObjects({ endpoint: service.endpoint, limits: SHORT })
  const a = instance('a', { maxLagBytes: 2000, objects: impatient })
  call(a.audit, 'one')
  await eventually('the first row to be copied', () => works(a.shipper.ship()))
  service.fault = () => 'cut'
  const during: string[] = []
  const refused = async () => {
    const tool = `during${during.length}`
    call(a.audit, tool)
    during.push(tool)
    await a.shipper.ship().catch(() => {})
    return a.audit.problem
  }
  for (let tries = 0; tries < 20 && (await refused()) === undefined; tries++);
  expect(during.length).toBeLessThan(10)
  expect(() => call(a.audit, 'not made')).toThrow(/could not be copied to the bucket .* No tool runs without a record/)
  expect(a.audit.problem).toMatch(/AUDIT_LAG_SECONDS/)
  service.fault = () => undefined
  await eventually('the rows to be copied', () => works(a.shipper.ship()))
  expect(a.audit.problem).toBeUndefined()
  call(a.audit, 'after')
  await a.audit.close()
  await eventually('the last rows to be copied', () => works(a.shipper.stop()))
  impatient.close()
  const b = instance('b')
  await b.mirror.sync()
  expect(tools([b.mirror.dir])).toEqual(['after', ...during.toReversed(), 'one'])
  const [chain] = await verified(join(root, 'nothing'))
  expect(chain).toMatchObject({ state: 'intact', problems: [] })
})

// Seen to fail: the next process counted every row as not copied, so all calls were refused after AUDIT_LAG_SECONDS.
it('copies rows also if it must not delete objects', async () => {
  service.fault = ({ method }) => (method === 'DELETE' ? 'forbidden' : undefined)
  const a = instance('a')
  for (let at = 0; at < 40; at++) {
    call(a.audit, `t${at}`)
    await a.shipper.ship()
  }
  const again = instance('a', { maxLagBytes: 0 })
  call(again.audit, 'last')
  await again.shipper.ship()
  expect(again.audit.problem).toBeUndefined()
  await Promise.all([a.audit.close(), again.audit.close()])
  await again.shipper.ship()
  expect((await verified(join(root, 'nothing'))).map(({ state }) => state)).toEqual(['intact', 'intact'])
})

it('does not remove files that are not in the bucket yet', async () => {
  const a = instance('a', {}, { maxBytes: 4000, maxFileBytes: 1000 })
  for (let at = 0; at < 60; at++) call(a.audit, `t${at}`)
  await a.shipper.ship()
  for (let at = 60; at < 100; at++) call(a.audit, `t${at}`)
  await a.audit.close()
  await a.shipper.ship()
  const b = instance('b')
  await b.mirror.sync()
  expect(readdirSync(a.dir).length).toBeLessThan(readdirSync(b.mirror.dir).length / 2)
  expect(tools([b.mirror.dir])).toHaveLength(100)
  expect((await verified(a.dir)).flatMap(({ problems }) => problems)).toEqual([])
})

it('removes the oldest files from the bucket, and records that first', async () => {
  const a = instance('a', {}, { maxFileBytes: 1000 })
  for (let at = 0; at < 30; at++) call(a.audit, `t${at}`)
  await a.audit.close()
  await a.shipper.stop()
  const b = instance('b')
  call(b.audit, 'recent')
  await b.shipper.ship()
  const limits = { maxBytes: { calls: 4000, routes: 4000 }, maxAgeMs: MANY }
  const record = async (removal: Parameters<Audit['removing']>[0]) => {
    b.audit.removing(removal)
    await b.shipper.ship()
  }
  const pruned = { ...b, own: b.dir, objects, limits, record, now: Date.now() + DAY_MS }
  const failing = { ...pruned, record: () => Promise.reject(new Error('away')) }
  const before = keys()
  await expect(pruneBucket(failing)).rejects.toThrow('away')
  expect(keys()).toEqual(before)
  expect(await pruneBucket(pruned)).toBeGreaterThan(2)
  expect(keys().length).toBeLessThan(before.length)
  const chains = await b.verify()
  expect(chains.flatMap(({ problems }) => problems)).toEqual([])
  expect(chains.some(({ pruned }) => (pruned?.calls ?? 0) > 5)).toBe(true)
})

it('brings a copy up to date that has only a part of a file, or an old one', async () => {
  const a = instance('a')
  for (let at = 0; at < 5; at++) {
    call(a.audit, `t${at}`)
    await a.shipper.ship()
  }
  const b = instance('b')
  await b.mirror.sync()
  const [name = ''] = readdirSync(b.mirror.dir)
  const path = join(b.mirror.dir, name)
  await a.audit.close()
  await a.shipper.stop()
  truncateSync(path, 1500)
  writeFileSync(join(b.mirror.dir, '0123456789abcdef-000001.jsonl'), 'gone from the bucket')
  await Promise.all([b.mirror.sync(), instance('b').mirror.sync()])
  expect(verifyAudit([b.mirror.dir])).toEqual(verifyAudit([a.dir]))
})

it('is not misled by foreign objects', async () => {
  const file = 'aaaaaaaaaaaaaaaa-000001.jsonl'
  const put = (key: string, bytes = 'x') =>
    objects.put(key, { bytes: bytes.length, read: async () => Buffer.from(bytes) })
  await put(`${prefix}audit/2026-01-01/../../etc/000000000000-000000000001`)
  await put(`${prefix}audit/2026-01-01/${file}/000000000000-000000000009`)
  await put(`${prefix}audit/notes.txt`)
  await put(segmentOf(prefix, file, 0, 1).key)
  const { files: found } = await listSegments(objects, prefix)
  expect([...found].map(([name, segments]) => [name, segments.length])).toEqual([[file, 1]])
})

it('chooses segments that have everything, whatever overlaps', () => {
  const pieces = fc.array(fc.tuple(fc.nat(50), fc.integer({ min: 1, max: 20 })), { maxLength: 20 })
  fc.assert(
    fc.property(pieces, fc.nat(60), (drawn, position) => {
      const sorted = drawn
        .map(([from, length]) => segmentOf('', 'f', from, from + length))
        .sort((x, y) => x.from - y.from || y.to - x.to)
      const bytes = (segments: typeof sorted) => {
        const all = new Set<number>()
        for (const { from, to } of segments) for (let at = Math.max(from, position); at < to; at++) all.add(at)
        return all
      }
      const chosen = coverOf(sorted, position)
      expect(bytes(chosen)).toEqual(bytes(sorted))
      const end = unbrokenEnd(sorted)
      for (let at = 0; at < end; at++) expect(sorted.some(({ from, to }) => from <= at && at < to)).toBe(true)
    })
  )
})

it('does not call a log intact that has too many objects to look at', async () => {
  let pages = 0
  const object = { key: 'foreign', bytes: 1, modifiedAt: 0 }
  const list = async () => ({ found: Array.from({ length: 1000 }, () => object), now: 0, next: String(++pages) })
  const work = join(temporaryFolder(), 'work')
  const checked = verifyBucket({
    objects: { list, read: async () => undefined },
    prefix: '',
    own: temporaryFolder(),
    work
  })
  await expect(checked).rejects.toMatchObject({ code: 'audit_too_large' })
  expect(pages).toBe(1000)
})
