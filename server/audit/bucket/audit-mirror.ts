/**
 * A copy of the audit logs of all instances, as files in a folder, so that everything that reads the log of one instance also reads
 * all of them. It can be lost at any time. Several processes may bring it up to date at once: they write the same bytes to the same places.
 */
import { existsSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../../lib/files/make-folder.ts'
import type { ObjectStore } from '../../storage/objects/object-store.ts'
import { isAuditFileName, lastRowOf } from '../audit-files.ts'
import { coverOf, listSegments, type Segment } from './audit-segments.ts'

export interface MirrorOptions {
  objects: Pick<ObjectStore, 'list' | 'read'>
  prefix: string
  dir: string
  /** The folder of this instance: its own files are not copied back. */
  own?: string | undefined
  /** The newest files are copied first; those beyond this size are left out. */
  maxBytes: number
}

const FILES_AT_ONCE = 8
const READ_BYTES = 4 * 1024 * 1024

export class AuditMirror {
  readonly #options: MirrorOptions
  #running: Promise<MirrorResult> | undefined

  constructor(options: MirrorOptions) {
    this.#options = options
  }

  get dir(): string {
    return this.#options.dir
  }

  /** Brings the folder up to date with the bucket. Calls at the same time share one run. */
  sync(): Promise<MirrorResult> {
    this.#running ??= this.#sync().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #sync(): Promise<MirrorResult> {
    const { objects, prefix, dir, own } = this.#options
    const { files: stored, isCut } = await listSegments(objects, prefix)
    makeFolder(dir)
    const isOwn = (name: string) => own !== undefined && existsSync(join(own, name))
    for (const name of readdirSync(dir)) {
      if (isAuditFileName(name) && (isOwn(name) || !stored.has(name))) rmSync(join(dir, name), { force: true })
    }
    const wanted = this.#newest([...stored].filter(([name]) => !isOwn(name)))
    const queue = wanted.values()
    const work = async () => {
      for (const [name, segments] of queue) await this.#syncFile(name, segments)
    }
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, work))
    return { stored, leftOut: stored.size - wanted.length, isCut }
  }

  /** The day is part of the key, so the newest ones are found without reading any. */
  #newest(files: [string, Segment[]][]): [string, Segment[]][] {
    const dayOf = ([, segments]: [string, Segment[]]) => segments.at(-1)?.key ?? ''
    let bytes = 0
    return files
      .sort((a, b) => dayOf(b).localeCompare(dayOf(a)))
      .filter(([, segments]) => {
        bytes += endOf(segments)
        return bytes <= this.#options.maxBytes
      })
  }

  async #syncFile(name: string, segments: Segment[]): Promise<void> {
    const { objects, dir } = this.#options
    const path = join(dir, name)
    const have = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (have >= endOf(segments)) return
    const file = await open(path, existsSync(path) ? 'r+' : 'w', 0o600)
    try {
      for (const { key, from, to } of coverOf(segments, have)) {
        for (let at = Math.max(have, from); at < to; ) {
          const found = await objects.read(key, at - from, Math.min(READ_BYTES, to - at))
          // Someone has merged or removed it meanwhile; the next run finds what there is now.
          if (!found || found.bytes.length === 0) return
          await file.write(found.bytes, 0, found.bytes.length, at)
          at += found.bytes.length
        }
      }
    } finally {
      await file.close()
    }
    const last = lastRowOf(path)
    // Objects are merged later than their rows are written, so their own times say nothing.
    const at = last === undefined ? Number.NaN : Date.parse(last.at)
    if (!Number.isNaN(at)) utimesSync(path, at / 1000, at / 1000)
  }
}

export interface MirrorResult {
  stored: ReadonlyMap<string, readonly Segment[]>
  /** Files that are not in the folder: those of this instance, and old ones beyond the size limit. */
  leftOut: number
  /** There are too many objects to list: the newest rows are missing. */
  isCut: boolean
}

function endOf(segments: readonly Segment[]): number {
  return segments.reduce((end, { to }) => Math.max(end, to), 0)
}
