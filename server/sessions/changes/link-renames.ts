/** Finds files that were renamed and changed: a deleted and a new one that share most of their lines. The work is bounded. */
import { posix } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import type { Checkpoint, StoredChange } from '../../storage/checkpoint-store.ts'
import { renamedFrom } from './changed-files.ts'

/** With more files on one side, nothing is compared. */
const MAX_FILES = 100
const MAX_FILE_BYTES = 256 * 1024
const MAX_SIDE_BYTES = 4 * 1024 * 1024
/** Lines that are compared on each side. Files beyond that are left out: short lines take much more memory than their bytes. */
const MAX_LINES = 50_000
/** The part of the larger file that both must share. */
const MIN_SHARED = 0.6
/** A line in more files than this says nothing about which of them it came from. */
const MAX_FILES_OF_LINE = 20
/** How many files each new one is compared with. */
const MAX_COMPARED = 4

type FileEntry = Extract<WorkspaceEntry, { type: 'file' }>

interface Text {
  path: string
  bytes: number
  /** How often each line occurs. */
  lines: Map<string, number>
}

/** The same changes, in which each new file names the deleted one that it was made from. Returns the argument if there is none. */
export async function linkRenames(
  checkpoint: Pick<Checkpoint, 'readSmall'>,
  changes: readonly StoredChange[]
): Promise<readonly StoredChange[]> {
  const exact = renamedFrom(changes)
  const taken = new Set([...exact.values()].map(({ path }) => path))
  const gone = changes.filter(({ path, after }) => !after && !taken.has(path)).map(({ before }) => before)
  const made = changes.filter(({ path, before }) => !before && !exact.has(path)).map(({ after }) => after)
  const [from, to] = [comparable(gone), comparable(made)]
  if (from.length === 0 || to.length === 0) return changes
  // Without their contents, they are shown as two files.
  const bytes = await checkpoint.readSmall([...from, ...to].map(({ hash }) => hash)).catch(() => [])
  const texts = async (entries: FileEntry[], start: number) => {
    const list: Text[] = []
    let left = MAX_LINES
    for (const [at, { path }] of entries.entries()) {
      const content = bytes[start + at]
      const text = content && (await textOf(path, content))
      if (!text || text.lines.size > left) continue
      left -= text.lines.size
      list.push(text)
    }
    return list
  }
  const pairs = await similarPairs(await texts(from, 0), await texts(to, from.length))
  if (pairs.size === 0) return changes
  return changes.map((change) => {
    const origin = pairs.get(change.path)
    return origin === undefined ? change : { ...change, from: origin }
  })
}

function comparable(entries: (WorkspaceEntry | null)[]): FileEntry[] {
  const files = entries.filter((entry): entry is FileEntry => {
    return entry?.type === 'file' && entry.size > 0 && entry.size <= MAX_FILE_BYTES
  })
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  return files.length > MAX_FILES || bytes > MAX_SIDE_BYTES ? [] : files
}

async function textOf(path: string, content: Uint8Array): Promise<Text> {
  const lines = new Map<string, number>()
  for (const line of Buffer.from(content).toString('latin1').split('\n')) lines.set(line, (lines.get(line) ?? 0) + 1)
  await nextTurn()
  return { path, bytes: content.length, lines }
}

/** By the path of a new file: the deleted one. The most similar ones find each other first. */
async function similarPairs(gone: readonly Text[], made: readonly Text[]): Promise<Map<string, string>> {
  const filesOf = new Map<string, Text[]>()
  for (const text of gone) {
    for (const line of text.lines.keys()) {
      const files = filesOf.get(line)
      if (!files) filesOf.set(line, [text])
      else if (files.length <= MAX_FILES_OF_LINE) files.push(text)
    }
    await nextTurn()
  }
  const found: { from: string; to: string; score: number }[] = []
  for (const text of made) {
    for (const other of likely(text, gone, filesOf)) {
      const score = sharedPart(text, other)
      if (score >= MIN_SHARED) found.push({ from: other.path, to: text.path, score })
    }
    await nextTurn()
  }
  found.sort((a, b) => b.score - a.score || Number(isSameName(b)) - Number(isSameName(a)) || (a.to < b.to ? -1 : 1))
  const pairs = new Map<string, string>()
  const used = new Set<string>()
  for (const { from, to } of found) {
    if (pairs.has(to) || used.has(from)) continue
    pairs.set(to, from)
    used.add(from)
  }
  return pairs
}

/** The deleted files that share the most with this one in lines that few have, and those of the same name. */
function likely(text: Text, gone: readonly Text[], filesOf: ReadonlyMap<string, Text[]>): Text[] {
  const shared = new Map<Text, number>()
  for (const line of text.lines.keys()) {
    const files = filesOf.get(line) ?? []
    if (files.length > MAX_FILES_OF_LINE) continue
    for (const file of files) shared.set(file, (shared.get(file) ?? 0) + line.length + 1)
  }
  const best = [...shared].sort(([, a], [, b]) => b - a).map(([file]) => file)
  const named = gone.filter(({ path }) => isSameName({ from: path, to: text.path }))
  return [...new Set([...best.slice(0, MAX_COMPARED), ...named.slice(0, MAX_COMPARED)])]
}

function sharedPart(a: Text, b: Text): number {
  let bytes = 0
  for (const [line, times] of a.lines) bytes += Math.min(times, b.lines.get(line) ?? 0) * (line.length + 1)
  return bytes / (Math.max(a.bytes, b.bytes) + 1)
}

function isSameName({ from, to }: { from: string; to: string }): boolean {
  return posix.basename(from) === posix.basename(to)
}
