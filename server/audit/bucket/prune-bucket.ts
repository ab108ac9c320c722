import { rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { ObjectStore } from '../../storage/objects/object-store.ts'
import { type AuditFamily, listAuditFiles } from '../audit-files.ts'
import { pruneList, type Removal, removalRecords } from '../prune-list.ts'
import type { AuditMirror } from './audit-mirror.ts'

export interface PruneOptions {
  mirror: AuditMirror
  /** The folder of this instance. */
  own: string
  objects: Pick<ObjectStore, 'remove'>
  limits: { maxBytes: Record<AuditFamily, number>; maxAgeMs: number }
  /** Resolves when the row about the removal is in the bucket. */
  record(removal: Removal): Promise<void>
  now?: number
}

/** Its instance may still be writing a file that changed so recently. */
const CALM_MS = 3_600_000

/** Removes the oldest files from the bucket, for their age or for the size limit. The removal is recorded first. */
export async function pruneBucket(options: PruneOptions): Promise<number> {
  const { mirror, own, objects, limits, now = Date.now() } = options
  const { stored } = await mirror.sync()
  const files = listAuditFiles([own, mirror.dir]).filter(({ path }) => stored.has(basename(path)))
  let removed = 0
  for (const family of ['calls', 'routes'] as const) {
    const { maxAgeMs, maxBytes } = limits
    const all = { family, maxBytes: maxBytes[family], maxAgeMs, now, current: '' }
    const going = pruneList(files, all).filter((file) => file.family === family && now - file.modifiedAt > CALM_MS)
    const removal = removalRecords(going, files)
    if (removal.files.length === 0) continue
    await options.record(removal)
    for (const { path } of removal.files) {
      await objects.remove((stored.get(basename(path)) ?? []).map(({ key }) => key))
      if (dirname(path) === mirror.dir) rmSync(path, { force: true })
      removed++
    }
  }
  return removed
}
