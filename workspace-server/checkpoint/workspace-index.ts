/**
 * Keeps the state of every file when last examined, and which changes the owner does not know yet. Does not know how changes are
 * found or sent. Invariant: the owner knows every entry that is not pending exactly as it is here.
 */
import type { Stats } from 'node:fs'
import { childOf, nameOf, parentOf, type RawPath } from './raw-path.ts'

export const MAX_ENTRIES = 100_000
const MAX_SKIPPED = 10_000

export interface IndexEntry {
  type: 'file' | 'dir' | 'link'
  mode: number
  mtimeMs: number
  ctimeMs: number
  size: number
  ino: number
  /** Hash of the file as last read; '' before that. */
  hash: string
  /** Only for links. */
  target: RawPath
  /** The names in a folder. */
  names: Set<string> | null
  /** The content must be read again. */
  stale: boolean
  /** Must be reported even if the content turns out to be the same. */
  changed: boolean
  /** Last read so soon after a change that another change could show the same times. */
  racy: boolean
}

export class WorkspaceIndex {
  readonly entries = new Map<RawPath, IndexEntry>()
  /** Paths to report: as an entry if there is one, otherwise as deleted. */
  readonly pending = new Set<RawPath>()
  readonly skipped = new Map<RawPath, string>()
  readonly pendingSkips = new Set<RawPath>()
  readonly rootNames = new Set<string>()
  bytes = 0

  set(raw: RawPath, entry: IndexEntry): void {
    this.bytes += sizeOf(entry) - sizeOf(this.entries.get(raw))
    this.entries.set(raw, entry)
    this.#namesOf(parentOf(raw))?.add(nameOf(raw))
    this.skipped.delete(raw)
  }

  /** Removes the path with everything below it; what the owner may know is reported as deleted. */
  remove(raw: RawPath): void {
    this.skipped.delete(raw)
    const entry = this.entries.get(raw)
    if (entry === undefined) return
    for (const name of entry.names ?? []) this.remove(childOf(raw, name))
    this.bytes -= sizeOf(entry)
    this.entries.delete(raw)
    this.#namesOf(parentOf(raw))?.delete(nameOf(raw))
    this.pending.add(raw)
  }

  skip(raw: RawPath, reason: string): void {
    const known = this.skipped.get(raw)
    this.remove(raw)
    if (this.skipped.size >= MAX_SKIPPED) return
    this.skipped.set(raw, reason)
    if (known !== reason) this.pendingSkips.add(raw)
  }

  names(folder: RawPath): ReadonlySet<string> {
    return this.#namesOf(folder) ?? new Set()
  }

  isFolder(raw: RawPath): boolean {
    return raw === '' || this.entries.get(raw)?.type === 'dir'
  }

  /** Whether there is space for a file of this size; its own old version does not count. */
  hasRoomFor(raw: RawPath, size: number, maxBytes: number): boolean {
    return this.bytes - sizeOf(this.entries.get(raw)) + size <= maxBytes
  }

  /** Everything must be reported again. */
  forgetReports(): void {
    for (const [raw, entry] of this.entries) {
      entry.changed = true
      this.pending.add(raw)
    }
    for (const raw of this.skipped.keys()) this.pendingSkips.add(raw)
  }

  #namesOf(folder: RawPath): Set<string> | null {
    return folder === '' ? this.rootNames : (this.entries.get(folder)?.names ?? null)
  }
}

/** An entry from a file's stats, with nothing known about its content. */
export function entryFrom(type: IndexEntry['type'], stats: Stats): IndexEntry {
  return {
    type,
    mode: stats.mode & 0o7777,
    mtimeMs: wholeMicroseconds(stats.mtimeMs),
    ctimeMs: stats.ctimeMs,
    size: type === 'file' ? stats.size : 0,
    ino: stats.ino,
    hash: '',
    target: '',
    names: type === 'dir' ? new Set() : null,
    stale: type === 'file',
    changed: true,
    racy: false
  }
}

/** Finer times are lost when they are set again. */
export function wholeMicroseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

function sizeOf(entry: IndexEntry | undefined): number {
  return entry?.size ?? 0
}
