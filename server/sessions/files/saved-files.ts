/** A session's files as last saved. Reading them needs neither the sandbox nor the session's lease. */
import { posix } from 'node:path'
import type { WorkspaceFile } from '../../../contract/rest.ts'
import { fromWire } from '../../../workspace-server/checkpoint/raw-path.ts'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { Checkpoint } from '../../storage/checkpoint-store.ts'
import type { OpenedFile } from './workspace-archive.ts'

const ROOT = '/workspace'
const MAX_LINKS = 40
const TYPES = { file: 'file', dir: 'directory', link: 'symlink' } as const

/** In the order of a walk through the folders. */
export function listSaved({ entries }: Checkpoint): WorkspaceFile[] {
  const files = [...entries.values()].map((entry) => ({
    path: Buffer.from(fromWire(entry.path), 'latin1').toString(),
    type: TYPES[entry.type],
    size: entry.type === 'file' ? entry.size : 0,
    mtimeMs: entry.type === 'file' ? Math.round(entry.mtimeMs) : 0
  }))
  const placed = files.map((file) => ({ file, place: file.path.replaceAll('/', '\0') }))
  return placed.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ file }) => file)
}

/** The direct children of a folder; `''` is the workspace itself. */
export function listSavedFolder(checkpoint: Checkpoint, folder: string): WorkspaceFile[] {
  const at = posix.resolve(ROOT, folder).slice(ROOT.length + 1)
  return listSaved(checkpoint).filter(({ path }) => (path.includes('/') ? posix.dirname(path) : '') === at)
}

/** The first chunk is read before this resolves, so that errors come early. */
export async function readSaved(checkpoint: Checkpoint, path: string, chunkBytes: number): Promise<OpenedFile> {
  return readStored(checkpoint, fileAt(checkpoint, path), chunkBytes)
}

/** As above, for any content of the checkpoint. */
export async function readStored(
  checkpoint: Checkpoint,
  { hash, size }: { hash: string; size: number },
  chunkBytes: number
): Promise<OpenedFile> {
  const rest = checkpoint.read(hash, chunkBytes)[Symbol.asyncIterator]()
  let first: IteratorResult<Uint8Array> | undefined = await rest.next()
  // Not a generator: one that never began would not close what it reads from.
  const chunks: AsyncIterableIterator<Buffer> = {
    [Symbol.asyncIterator]: () => chunks,
    async next() {
      const result = first ?? (await rest.next())
      first = undefined
      return result.done ? { done: true, value: undefined } : { value: Buffer.from(result.value) }
    },
    async return() {
      await rest.return?.()
      return { done: true, value: undefined }
    }
  }
  return { size, chunks }
}

function fileAt({ entries }: Checkpoint, path: string): Extract<WorkspaceEntry, { type: 'file' }> {
  let at = posix.resolve(ROOT, path)
  for (let links = 0; links < MAX_LINKS && at.startsWith(`${ROOT}/`); links++) {
    const entry = entries.get(at.slice(ROOT.length + 1))
    if (entry?.type === 'file') return entry
    if (entry?.type !== 'link') break
    at = posix.resolve(posix.dirname(at), entry.target)
  }
  throw new AppError('invalid', 'file_refused', `There is no saved file at "${path.slice(0, 200)}".`)
}
