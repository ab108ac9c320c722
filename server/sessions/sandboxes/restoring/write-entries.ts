import { fromWire } from '../../../../workspace-server/checkpoint/raw-path.ts'
import { zeroRuns } from '../../../../workspace-server/checkpoint/zero-runs.ts'
import type { WorkspaceEntry } from '../../../../workspace-server/protocol.ts'
import type { Checkpoint } from '../../../storage/checkpoint-store.ts'
import type { RestoreBatch } from './restore-batch.ts'

const CHUNK_BYTES = 1024 * 1024
/** Files up to this size are read many at once. */
const SMALL_BYTES = 64 * 1024
const GROUP_BYTES = 1024 * 1024

type FileEntry = Extract<WorkspaceEntry, { type: 'file' }>
export type DirEntry = Extract<WorkspaceEntry, { type: 'dir' }>

/** Writes entries whose content is in the checkpoint. Parents come first. Resolves when all is written. */
export async function writeEntries(
  batch: RestoreBatch,
  checkpoint: Checkpoint,
  entries: readonly WorkspaceEntry[],
  folders: readonly DirEntry[]
): Promise<void> {
  const dirs = folders.toSorted((a, b) => depth(a.path) - depth(b.path))
  // A read-only folder gets its real mode after its files are written.
  for (const dir of dirs) await batch.add({ ...dir, mode: 0o700 })
  const files = entries.filter((entry) => entry.type === 'file')
  for (const group of groupsOf(files.filter(({ size }) => size <= SMALL_BYTES)))
    await writeSmall(batch, checkpoint, group)
  for (const file of files) if (file.size > SMALL_BYTES) await writeLarge(batch, checkpoint, file)
  for (const entry of entries) if (entry.type === 'link') await batch.add(entry)
  for (const dir of dirs.reverse()) await batch.add(dir)
  await batch.finish()
}

/** The deeper, the higher. */
export function depth(path: string): number {
  return fromWire(path).split('/').length
}

function* groupsOf(files: readonly FileEntry[]): Iterable<FileEntry[]> {
  let group: FileEntry[] = []
  let bytes = 0
  for (const file of files) {
    group.push(file)
    bytes += file.size
    if (bytes < GROUP_BYTES && group.length < 1000) continue
    yield group
    group = []
    bytes = 0
  }
  if (group.length > 0) yield group
}

async function writeSmall(batch: RestoreBatch, checkpoint: Checkpoint, files: readonly FileEntry[]): Promise<void> {
  const contents = await checkpoint.readSmall(files.map(({ hash }) => hash))
  for (const [at, file] of files.entries()) {
    const content = contents[at]
    if (content) await batch.add(file, content)
    else await writeLarge(batch, checkpoint, file)
  }
}

async function writeLarge(batch: RestoreBatch, checkpoint: Checkpoint, file: FileEntry): Promise<void> {
  if (file.size === 0) return batch.add(file, Buffer.alloc(0))
  let offset = 0
  for await (const chunk of checkpoint.read(file.hash, CHUNK_BYTES)) {
    for (const { at, length, isZero } of zeroRuns(chunk)) {
      const part = isZero ? chunk.subarray(0, 0) : chunk.subarray(at, at + length)
      // The first part creates the file in its full size, so the zeros that follow already exist as a hole.
      if (!isZero || offset + at === 0) await batch.add({ ...file, offset: offset + at }, part)
    }
    offset += chunk.length
  }
}
