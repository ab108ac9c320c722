/**
 * Moves an installation to another store while it is stopped: folder or bucket, SQLite or Redis. Owns the order of the steps. Invariant:
 * the source is never changed, and the target is not served before everything in it was compared with the source.
 */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { copyFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Settings } from '../../config/settings.ts'
import { AppError } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import type { Logger } from '../../lib/logger.ts'
import { plural } from '../../lib/plural.ts'
import { isCopied, RowDigest, type StoreRow } from '../../storage/backup/store-row.ts'
import { rememberDeploymentId } from '../../storage/deployment-file.ts'
import { copySessionFiles, verifySessionFiles } from '../../storage/migrate/copy-session-files.ts'
import { parseAddress } from '../../storage/object-checkpoints/object-names.ts'
import type { Store } from '../../storage/store.ts'
import { dataPaths } from '../data-paths.ts'
import { openBucket } from '../open-checkpoints.ts'
import { deploymentFileOf } from '../open-store.ts'
import { checkClaim, claimForMove } from './claimed-bucket.ts'
import { type MigrationFiles, openMigrationFiles } from './migration-files.ts'
import { type MigrationStore, openMigrationStore } from './migration-store.ts'

export interface Migration {
  from: Settings
  to: Settings
  isDryRun: boolean
  say(line: string): void
  logger: Logger
}

interface Seen {
  digest: RowDigest
  /** The epoch of each session; undefined if it has no record. */
  sessions: Map<string, number | undefined>
}

const NO_LEASE_MS = 1

export async function migrate(migration: Migration): Promise<void> {
  const { from, to, isDryRun, say, logger } = migration
  checkPlaces(from, to)
  const work = workFolder(migration)
  const source = await openMigrationStore(from, 'from', work, logger)
  try {
    const target = await openMigrationStore(to, 'to', work, logger)
    try {
      const isRepeated = await checkTarget(target)
      say(`From ${describe(from, source)} to ${describe(to, target)}${isRepeated ? ', again' : ''}.`)
      await checkBucket(migration, work, isRepeated)
      if (isDryRun) await count(migration, source, work)
      else await move(migration, source, target, work, isRepeated)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
    await rm(work, { recursive: true, force: true })
  }
}

async function move(
  migration: Migration,
  source: MigrationStore,
  target: MigrationStore,
  work: string,
  isRepeated: boolean
): Promise<void> {
  const { from, to, say } = migration
  await target.begin()
  const seen: Seen = { digest: new RowDigest(), sessions: new Map() }
  await target.write(watched(source.rows(), seen))
  const { digest } = seen
  say(`Copied ${plural(digest.count('event'), 'event')} of ${plural(seen.sessions.size, 'session')}.`)
  const stores = [await source.open(), await target.open()] as const
  try {
    await createRecords(stores[1], seen)
    if (!isSameFolder(from, to)) await moveFiles(migration, stores, seen, work, isRepeated)
    await verifyRows(target, seen)
    await stores[1].keyValues.set('migration', 'digest', digest.text)
    rememberDeploymentId(await deploymentFileOf(to), await stores[1].sessions.deploymentId())
  } finally {
    for (const store of stores) await store.close()
  }
  if (!isSameDir(from, to)) await copyFolderFiles(migration, work)
  await target.end()
  say(
    'Everything was compared with the source, which has not changed. Start the new installation, then archive the old one.'
  )
}

/** For heads in a bucket, each session with files needs a record. */
async function createRecords({ sessions }: Store, seen: Seen): Promise<void> {
  for (const [id, epoch] of seen.sessions) {
    if (epoch !== undefined) continue
    const taken = await sessions.acquire(id, 'migration', NO_LEASE_MS)
    if (!taken.granted) continue
    const { record } = taken
    await sessions.release(id, record.epoch)
    seen.sessions.set(id, record.epoch)
    seen.digest.add(rowOf(record))
  }
}

function rowOf(record: { sessionId: string; epoch: number; createdAt: number; activeAt: number }): StoreRow {
  const { sessionId: id, epoch, createdAt, activeAt } = record
  return { kind: 'session', id, epoch, createdAt, activeAt }
}

async function moveFiles(
  { from, to, say, logger }: Migration,
  [source, target]: readonly [Store, Store],
  { sessions }: Seen,
  work: string,
  isRepeated: boolean
): Promise<void> {
  const opened: MigrationFiles[] = []
  const open = async (settings: Settings, store: Store) => {
    const files = await openMigrationFiles(settings, store, work, logger)
    opened.push(files)
    return files
  }
  try {
    const [read, written] = [await open(from, source), await open(to, target)]
    if (written.bucket) await claimForMove(written.bucket, target, dataPaths(to.DATA_DIR).root, isRepeated)
    const checked = await open(to, target)
    let done = 0
    let bytes = 0
    for (const [id, epoch = 0] of sessions) {
      const hasFiles = (await read.checkpoints.has(id)) || (await read.contentHashes(id)).length > 0
      if (hasFiles) {
        bytes += (await copySessionFiles(read, written.checkpoints, id, epoch)).bytes
        await verifySessionFiles(read, checked, id, epoch)
      }
      done++
      if (done % 20 === 0 || done === sessions.size)
        say(`Files of ${done} of ${sessions.size} sessions, ${bytes} bytes`)
    }
  } finally {
    for (const files of opened) files.close()
  }
}

async function verifyRows(target: MigrationStore, { digest }: Seen): Promise<void> {
  const there = new RowDigest()
  for await (const row of target.rows()) if (isCopied(row)) there.add(row)
  const wrong = digest.differences(there)
  if (wrong.length === 0) return
  const message = `The copy in ${target.name} differs from the source (${wrong.join(', ')}): run the command again.`
  throw new AppError('internal', 'migration_differs', message)
}

/** The audit log, logins and accepted entries. */
async function copyFolderFiles({ from, to, say, logger }: Migration, work: string): Promise<void> {
  const [old, fresh] = [dataPaths(from.DATA_DIR), dataPaths(to.DATA_DIR)]
  const copies = join(work, 'audit')
  const bucket = await openBucket({ ...from, DATA_DIR: work }, logger)
  if (bucket) {
    const { AuditMirror } = await import('../../audit/bucket/audit-mirror.ts')
    const { objects, prefix } = bucket
    const maxBytes = Number.POSITIVE_INFINITY
    await new AuditMirror({ objects, prefix, dir: copies, own: old.audit, maxBytes }).sync()
    objects.close()
  }
  const folders = [
    [copies, fresh.audit],
    [old.audit, fresh.audit],
    [old.logins, fresh.logins]
  ] as const
  const all = folders.flatMap(([a, b]) =>
    existsSync(a) ? readdirSync(a).map((name) => [join(a, name), join(b, name)]) : []
  )
  const grants = join(old.root, 'grants.json')
  if (existsSync(grants)) all.push([grants, join(fresh.root, 'grants.json')])
  const wanted = all.filter(([path = '']) => /\.jsonl?$/.test(basename(path)))
  for (const [path = '', copy = ''] of wanted) await copyChecked(path, copy)
  say(`Copied ${plural(wanted.length, 'file')} of the audit log, logins and accepted entries.`)
}

async function copyChecked(path: string, copy: string): Promise<void> {
  makeFolder(dirname(copy))
  await copyFile(path, copy)
  if ((await hashOf(path)) === (await hashOf(copy))) return
  throw new AppError('internal', 'migration_differs', `${copy} differs from ${path}: run the command again.`)
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

async function count({ from, say, logger }: Migration, source: MigrationStore, work: string): Promise<void> {
  const seen: Seen = { digest: new RowDigest(), sessions: new Map() }
  for await (const _ of watched(source.rows(), seen));
  const store = await source.open()
  const files = await openMigrationFiles(from, store, work, logger)
  try {
    const bytes = await files.checkpoints.bytes()
    say(
      `${plural(seen.sessions.size, 'session')}, ${plural(seen.digest.count('event'), 'event')}, ${bytes} bytes of files.`
    )
    say('Nothing was changed: this was a dry run.')
  } finally {
    files.close()
    await store.close()
  }
}

/** Passes the rows on, except those of running instances, and notes what it has seen. */
async function* watched(rows: AsyncIterable<StoreRow>, { digest, sessions }: Seen): AsyncGenerator<StoreRow> {
  for await (const row of rows) {
    if (!isCopied(row)) continue
    if (row.kind === 'session') sessions.set(row.id, row.epoch)
    if (row.kind === 'event' && !sessions.has(row.id)) sessions.set(row.id, undefined)
    digest.add(row)
    yield row
  }
}

/** Returns whether an earlier move to it may be replaced. Throws if it has data of its own. */
async function checkTarget(target: MigrationStore): Promise<boolean> {
  if (target.isUnfinished) return true
  const there = new RowDigest()
  let known: string | undefined
  for await (const row of target.rows()) {
    if (isCopied(row)) there.add(row)
    else if (row.kind === 'fact' && row.space === 'migration') known = JSON.parse(row.value)
  }
  if (there.isEmpty) return false
  // An earlier move that nobody has used since.
  if (known === there.text) return true
  const message = `There is data in ${target.name} already: choose an empty place for --to.`
  throw new AppError('conflict', 'folder_not_empty', message)
}

/** Before anything is changed. */
async function checkBucket({ to, logger }: Migration, work: string, isRepeated: boolean): Promise<void> {
  const bucket = await openBucket({ ...to, DATA_DIR: work }, logger)
  if (!bucket) return
  try {
    await checkClaim(bucket, dataPaths(to.DATA_DIR).root, isRepeated)
  } finally {
    bucket.objects.close()
  }
}

function checkPlaces(from: Settings, to: Settings): void {
  const isSame =
    from.REDIS_URL === to.REDIS_URL && (from.REDIS_URL ? from.DEPLOYMENT === to.DEPLOYMENT : isSameDir(from, to))
  const place = ({ CHECKPOINT_STORE: address, S3_ENDPOINT: endpoint }: Settings) => {
    return address && JSON.stringify([parseAddress(address), endpoint ?? ''])
  }
  const isSameBucket = from.CHECKPOINT_STORE !== undefined && place(from) === place(to)
  if (!isSame && !isSameBucket) return
  const message = isSame
    ? '--from and --to name the same store: the target must be another folder, another Redis, or another DEPLOYMENT.'
    : 'Two stores must not share a bucket and prefix: set another prefix in CHECKPOINT_STORE of --to.'
  throw new AppError('invalid', 'usage', message)
}

function isSameDir(from: Settings, to: Settings): boolean {
  return dataPaths(from.DATA_DIR).root === dataPaths(to.DATA_DIR).root
}

/** The files can stay where they are. */
function isSameFolder(from: Settings, to: Settings): boolean {
  return isSameDir(from, to) && !from.CHECKPOINT_STORE && !to.CHECKPOINT_STORE
}

/** On the disk of the target, which must have room for all of it. A dry run leaves that alone. */
function workFolder({ to, isDryRun }: Migration): string {
  const { root } = dataPaths(to.DATA_DIR)
  if (!isDryRun) makeFolder(root)
  return mkdtempSync(join(isDryRun ? tmpdir() : root, 'migration-'))
}

function describe(settings: Settings, store: MigrationStore): string {
  return `${store.name} with files in ${settings.CHECKPOINT_STORE ?? dataPaths(settings.DATA_DIR).checkpoints}`
}
