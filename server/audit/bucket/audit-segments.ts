/**
 * Names of the audit log's objects. A file of a chain becomes several objects, each with the bytes from one position to another, so
 * the same key always has the same content. The day is for people who look for a time.
 */
import type { ObjectStore, StoredObject } from '../../storage/objects/object-store.ts'
import { isAuditFileName } from '../audit-files.ts'

export interface Segment {
  key: string
  from: number
  to: number
}

const FOLDER = 'audit/'
const KEY = /^\d{4}-\d\d-\d\d\/([^/]+)\/(\d{12})-(\d{12})$/
const MAX_OBJECTS = 1_000_000
export const TOO_MANY =
  'more than 1,000,000 objects in the bucket, so the newest rows are not found. Allow the key to delete objects, so that small ones are merged, or shorten RETENTION_DAYS.'

export function segmentOf(prefix: string, file: string, from: number, to: number, at = new Date()): Segment {
  const place = [from, to].map((position) => String(position).padStart(12, '0')).join('-')
  return { key: `${prefix}${FOLDER}${at.toISOString().slice(0, 10)}/${file}/${place}`, from, to }
}

export interface ListedSegments {
  /** By file, sorted by position. Objects that are none of ours, or have another size than they should, are left out. */
  files: Map<string, Segment[]>
  /** There are more than `MAX_OBJECTS` objects: the newest are missing. */
  isCut: boolean
}

export async function listSegments(objects: Pick<ObjectStore, 'list'>, prefix: string): Promise<ListedSegments> {
  const files = new Map<string, Segment[]>()
  let seen = 0
  let from: string | undefined
  do {
    const page = await objects.list(prefix + FOLDER, from)
    for (const object of page.found) {
      const [file, segment] = parseSegment(prefix + FOLDER, object) ?? []
      if (file === undefined || segment === undefined) continue
      const known = files.get(file)
      if (known) known.push(segment)
      else files.set(file, [segment])
    }
    seen += page.found.length
    from = page.next
  } while (from !== undefined && seen < MAX_OBJECTS)
  for (const segments of files.values()) segments.sort((a, b) => a.from - b.from || b.to - a.to)
  return { files, isCut: from !== undefined }
}

function parseSegment(folder: string, { key, bytes }: StoredObject): [string, Segment] | undefined {
  const [, file = '', first, end] = KEY.exec(key.slice(folder.length)) ?? []
  const [from, to] = [Number(first), Number(end)]
  return isAuditFileName(file) && to - from === bytes && bytes > 0 ? [file, { key, from, to }] : undefined
}

/** The fewest segments that have everything from a position on. There may be gaps between them if objects are missing. */
export function coverOf(sorted: readonly Segment[], position = 0): Segment[] {
  const chosen: Segment[] = []
  let end = position
  for (let at = 0; at < sorted.length; ) {
    let best: Segment | undefined
    for (; at < sorted.length && (sorted[at]?.from ?? 0) <= end; at++) {
      const each = sorted[at]
      if (each && each.to > (best?.to ?? end)) best = each
    }
    // Nothing continues here: go on after the gap.
    if (!best) end = sorted[at]?.from ?? end
    else {
      chosen.push(best)
      end = best.to
    }
  }
  return chosen
}

/** Up to where there is no gap. */
export function unbrokenEnd(sorted: readonly Segment[]): number {
  let end = 0
  for (const { from, to } of sorted) if (from <= end) end = Math.max(end, to)
  return end
}
