import { open, readFile, stat, utimes } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError, hasCode } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { CheckpointState, replay } from './checkpoint-state.ts'
import { decodeRecords, type ManifestRecord } from './manifest-record.ts'
import type { PackSet } from './pack-set.ts'
import type { SessionFolder } from './session-folder.ts'

interface Found {
  manifest: string
  state: CheckpointState
}

const MAX_ATTEMPTS = 10

/** Loads the newest state of this or a lower epoch and opens its packs under our own names. */
export async function loadCheckpoint(folder: SessionFolder, packs: PackSet, logger: Logger): Promise<CheckpointState> {
  for (let attempt = 1; ; attempt++) {
    const found = await newestState(folder, logger)
    if (!found) return new CheckpointState()
    const missing = await adoptPacks(found.state, folder, packs)
    if (missing.length === 0) return found.state
    const [newest] = await folder.manifests()
    if (newest?.name === found.manifest || attempt === MAX_ATTEMPTS) {
      // Reading their content will fail, but the other files are still worth having.
      logger.error({ missing, folder: folder.path }, 'checkpoint: content is missing')
      return found.state
    }
    // A former owner rewrote its files between our reads of its manifest and of its packs.
    packs.close()
    await folder.removeAllOwn()
  }
}

async function newestState(folder: SessionFolder, logger: Logger): Promise<Found | undefined> {
  const manifests = await folder.manifests()
  for (const { name } of manifests) {
    const bytes = await readFile(folder.file(name)).catch(ignoreMissing)
    const state = bytes && (await parseManifest(bytes, folder, logger))
    if (state) return { manifest: name, state }
    if (bytes) logger.error({ manifest: folder.file(name) }, 'checkpoint: a manifest is damaged; trying an older one')
  }
  if (manifests.length === 0) return undefined
  const message =
    'The stored files of this session are damaged; restore the data folder from a copy, or remove the session.'
  throw new AppError('internal', 'checkpoint_damaged', message)
}

async function parseManifest(
  bytes: Buffer,
  folder: SessionFolder,
  logger: Logger
): Promise<CheckpointState | undefined> {
  const { records, rest } = await decodeRecords(bytes)
  const last = records.at(-1)
  const isDelta = records.length > 1 && !records.at(-2)?.more
  if (isDelta && last && !(await hasContent(last, folder))) records.pop()
  // A torn line can only be the last one. More lines after it mean damage and lost commits.
  if (rest > 0 && bytes.subarray(bytes.length - rest, -1).includes(10)) {
    logger.error(
      { folder: folder.path },
      'checkpoint: a manifest is damaged in the middle; continuing with the records before the damage'
    )
  }
  let state: CheckpointState | undefined
  let isWhole = false
  for (const [i, record] of records.entries()) {
    if (i === 0 && !record.snapshot) return undefined
    const next = replay(state ?? new CheckpointState(), record)
    if (!next) break
    state = next
    isWhole ||= !record.more
    if (record.more) await nextTurn()
  }
  return isWhole ? state : undefined
}

/** Packs are durable before the record that names them. If a disk breaks that promise, we treat the record as torn. */
async function hasContent(record: ManifestRecord, folder: SessionFolder): Promise<boolean> {
  const ends = new Map<string, number>()
  for (const [, pack, offset, length, stored = length] of record.blobs) {
    const name = record.packs[pack] ?? ''
    ends.set(name, Math.max(ends.get(name) ?? 0, offset + stored))
  }
  for (const [name, end] of ends) {
    const info = await stat(folder.file(name)).catch(ignoreMissing)
    // A missing pack has another reason: its owner has just rewritten it, or it is lost.
    if (info && info.size < end) return false
  }
  return true
}

/** Returns the missing packs. */
async function adoptPacks(state: CheckpointState, folder: SessionFolder, packs: PackSet): Promise<string[]> {
  const names = new Map<string, string>()
  const missing: string[] = []
  for (const pack of state.packUse().keys()) {
    try {
      const own = await folder.adoptPack(pack)
      const handle = await open(folder.file(own), 'r')
      packs.add(own, handle, (await handle.stat()).size)
      names.set(pack, own)
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
      missing.push(pack)
    }
  }
  state.renamePacks(names)
  return missing
}

/** Opening a session counts as use. */
export async function markUsed(folder: SessionFolder): Promise<void> {
  const now = new Date()
  await utimes(folder.path, now, now).catch(ignoreMissing)
}

function ignoreMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT')) throw error
}
