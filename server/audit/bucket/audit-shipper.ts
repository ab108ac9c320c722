/**
 * Copies the audit log of this folder to the bucket, seconds after its rows were written. Owns the objects of these files, not the
 * rows. Invariant: it says how far the copy is behind, and no call is made while that is too much; an object is deleted only if
 * another one has the same rows.
 */
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { hasCode, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import { contentOf, type ObjectStore } from '../../storage/objects/object-store.ts'
import { type AuditFile, listAuditFiles } from '../audit-files.ts'
import { coverOf, listSegments, type Segment, segmentOf, TOO_MANY, unbrokenEnd } from './audit-segments.ts'

export interface ShipperOptions {
  dir: string
  objects: Pick<ObjectStore, 'put' | 'list' | 'remove'>
  prefix: string
  /** Calls are refused when rows could not be copied for this long, or when there are this many bytes of them. */
  maxLagMs: number
  maxLagBytes: number
  logger: Logger
  everyMs?: number
}

interface Shipped {
  end: number
  /** The size of the file if its last row is cut off: there is nothing more to copy. */
  cutAt?: number
  /** Objects that are to be merged into one. */
  small: Segment[]
}

const EVERY_MS = 2000
const MAX_OBJECT_BYTES = 1024 * 1024
const MERGE_FROM = 32
const NEWLINE = 0x0a

export class AuditShipper {
  readonly #options: ShipperOptions
  readonly #files = new Map<string, Shipped>()
  readonly #queue = new KeyedLock()
  #isListed = false
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  /** Since when there are rows that are not in the bucket, how many bytes, and why. */
  #behind: { since: number; bytes: number; reason: string } | undefined
  #isReported = false
  #isLeftReported = false

  constructor(options: ShipperOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      void this.ship().then(
        () => this.start(),
        () => this.start()
      )
    }, this.#options.everyMs ?? EVERY_MS).unref()
  }

  /** Copies the last rows, and merges what is small. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.ship(2)
  }

  get lag(): { seconds: number; bytes: number } {
    const { since = performance.now(), bytes = 0 } = this.#behind ?? {}
    return { seconds: (performance.now() - since) / 1000, bytes }
  }

  /** Why no call may be made. */
  get refusal(): string | undefined {
    if (!this.#behind) return undefined
    const { maxLagMs, maxLagBytes } = this.#options
    const { since, bytes, reason } = this.#behind
    const seconds = Math.round((performance.now() - since) / 1000)
    if (seconds * 1000 <= maxLagMs && bytes <= maxLagBytes) return undefined
    return `The audit log could not be copied to the bucket for ${seconds} seconds${reason}: make the bucket reachable, or raise AUDIT_LAG_SECONDS.`
  }

  /** Whether all of this file is in the bucket. */
  isCopied(path: string, bytes: number): boolean {
    const { end = 0, cutAt } = this.#files.get(basename(path)) ?? {}
    return end >= bytes || cutAt === bytes
  }

  /** Resolves when every row that was written before is in the bucket. */
  ship(mergeFrom = MERGE_FROM): Promise<void> {
    return this.#queue.run('', async () => {
      try {
        this.#look()
        if (!this.#isListed) await this.#listShipped()
        for (const file of this.#look()) await this.#shipFile(file, mergeFrom).catch(ignoreRemoved)
        if (this.#isReported) this.#options.logger.info('The audit log is copied to the bucket again.')
        this.#isReported = false
        this.#behind = undefined
      } catch (error) {
        if (this.#behind) this.#behind.reason = ` (${messageOf(error)})`
        if (!this.#isReported) this.#options.logger.warn({ err: error }, 'The audit log is not copied to the bucket.')
        this.#isReported = true
        throw error
      }
    })
  }

  /** The files with rows that are not in the bucket. */
  #look(): AuditFile[] {
    const files = listAuditFiles([this.#options.dir]).filter(({ path, bytes }) => !this.isCopied(path, bytes))
    const bytes = files.reduce((sum, file) => sum + file.bytes - (this.#files.get(basename(file.path))?.end ?? 0), 0)
    if (bytes > 0) this.#behind = { since: performance.now(), reason: '', ...this.#behind, bytes }
    return files
  }

  /** Finds out what an earlier process has copied. */
  async #listShipped(): Promise<void> {
    const { objects, prefix, dir } = this.#options
    const { files: stored, isCut } = await listSegments(objects, prefix)
    if (isCut) this.#options.logger.warn(`The audit log has ${TOO_MANY}`)
    for (const { path } of listAuditFiles([dir])) {
      const segments = stored.get(basename(path)) ?? []
      const cover = coverOf(segments)
      await this.#removeCopies(segments.filter((each) => !cover.includes(each)).map(({ key }) => key))
      this.#files.set(basename(path), { end: unbrokenEnd(segments), small: neighbours(cover.filter(isSmall)) })
    }
    this.#isListed = true
  }

  async #shipFile({ path, bytes }: AuditFile, mergeFrom: number): Promise<void> {
    const { objects, prefix } = this.#options
    const name = basename(path)
    const shipped = this.#files.get(name) ?? { end: 0, small: [] }
    this.#files.set(name, shipped)
    while (shipped.end < bytes) {
      const rows = await readRows(path, shipped.end, MAX_OBJECT_BYTES)
      if (rows.length === 0) {
        shipped.cutAt = bytes
        break
      }
      const segment = segmentOf(prefix, name, shipped.end, shipped.end + rows.length)
      await objects.put(segment.key, contentOf(rows))
      shipped.end = segment.to
      shipped.small = isSmall(segment) ? neighbours([...shipped.small, segment]) : []
    }
    const total = shipped.small.reduce((sum, { from, to }) => sum + to - from, 0)
    if (shipped.small.length >= mergeFrom || (total >= MAX_OBJECT_BYTES && shipped.small.length > 1)) {
      await this.#merge(path, shipped)
    }
  }

  async #merge(path: string, shipped: Shipped): Promise<void> {
    const { objects, prefix } = this.#options
    const [first, last] = [shipped.small[0], shipped.small.at(-1)]
    if (!first || !last) return
    const rows = await readRows(path, first.from, last.to - first.from)
    // The file is not the one that was copied: leave the objects alone.
    if (rows.length !== last.to - first.from) return
    const merged = segmentOf(prefix, basename(path), first.from, last.to)
    const old = shipped.small.map(({ key }) => key).filter((key) => key !== merged.key)
    await objects.put(merged.key, contentOf(rows))
    shipped.small = isSmall(merged) ? [merged] : []
    await this.#removeCopies(old)
  }

  /** Other objects have the same rows, so nothing depends on this: a key that must not delete is no reason to refuse calls. */
  async #removeCopies(keys: readonly string[]): Promise<void> {
    try {
      await this.#options.objects.remove(keys)
    } catch (error) {
      if (!this.#isLeftReported) {
        const message = `Small objects of the audit log are left in the bucket: ${messageOf(error)}`
        this.#options.logger.warn({ err: error }, message)
      }
      this.#isLeftReported = true
    }
  }
}

function isSmall({ from, to }: Segment): boolean {
  return to - from < MAX_OBJECT_BYTES / 2
}

/** The last of them that follow each other without a gap. */
function neighbours(segments: Segment[]): Segment[] {
  let first = segments.length - 1
  while (first > 0 && segments[first - 1]?.to === segments[first]?.from) first--
  return segments.slice(Math.max(0, first))
}

/** The file was too old, and is gone. */
function ignoreRemoved(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error
}

/** Complete rows only: another process may be writing the last one. */
async function readRows(path: string, from: number, maxBytes: number): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const buffer = Buffer.alloc(maxBytes)
    const { bytesRead } = await file.read(buffer, 0, maxBytes, from)
    return buffer.subarray(0, buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE) + 1)
  } finally {
    await file.close()
  }
}
