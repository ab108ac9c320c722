import { isDeepStrictEqual } from 'node:util'
import { AppError } from '../../lib/errors.ts'
import type { Checkpoint, CheckpointStore, ContentStore } from '../checkpoint-store.ts'

/** One side of a move. */
export interface FilesPlace {
  open(sessionId: string, epoch: number): Promise<Checkpoint>
  contents: ContentStore
  /** The hashes of the contents that conversations name. */
  contentHashes(sessionId: string): Promise<string[]>
}

export interface CopiedFiles {
  files: number
  bytes: number
  /** Everything was there already. */
  isSame: boolean
}

const CHUNK = 1024 * 1024

/** Copies the files, versions and open changes of a session. It can be repeated; what is there already is not copied again. */
export async function copySessionFiles(
  from: FilesPlace,
  to: Pick<CheckpointStore, 'open' | 'putContent' | 'getContent'>,
  sessionId: string,
  epoch: number
): Promise<CopiedFiles> {
  for (const hash of await from.contentHashes(sessionId)) {
    if (await to.getContent(sessionId, hash)) continue
    const bytes = await from.contents.getContent(sessionId, hash)
    if (!bytes || (await to.putContent(sessionId, bytes)) !== hash) throw differs(sessionId)
  }
  const source = await from.open(sessionId, epoch)
  const target = await to.open(sessionId, epoch)
  try {
    const isSame = isSameState(source, target)
    const hashes = hashesOf(source)
    let bytes = 0
    for (const hash of isSame ? [] : hashes) {
      if (target.has(hash)) continue
      const added = await target.addBlob(source.read(hash, CHUNK))
      if (added.hash !== hash) throw differs(sessionId)
      bytes += added.size
    }
    if (!isSame) await target.commit(differenceOf(source, target))
    return { files: source.entries.size, bytes, isSame }
  } finally {
    await target.close()
    await source.close()
  }
}

/** Reads everything from the target again and compares it with the source. Throws `migration_differs`. */
export async function verifySessionFiles(
  from: FilesPlace,
  to: FilesPlace,
  sessionId: string,
  epoch: number
): Promise<void> {
  for (const hash of await from.contentHashes(sessionId)) {
    if (!(await to.contents.getContent(sessionId, hash))) throw differs(sessionId)
  }
  const source = await from.open(sessionId, epoch)
  const target = await to.open(sessionId, epoch)
  try {
    if (!isSameState(source, target)) throw differs(sessionId)
    // Reading compares each content with its hash.
    for (const hash of hashesOf(source)) for await (const _ of target.read(hash, CHUNK));
  } finally {
    await target.close()
    await source.close()
  }
}

function isSameState(a: Checkpoint, b: Checkpoint): boolean {
  return isDeepStrictEqual(new Map(a.entries), new Map(b.entries)) && isDeepStrictEqual(setsOf(a), setsOf(b))
}

function setsOf({ changeSets }: Checkpoint): unknown[] {
  return [...changeSets.values()].map((set) => ({ ...set, changes: [...set.changes] }))
}

function differenceOf(source: Checkpoint, target: Checkpoint) {
  return {
    put: [...source.entries.values()],
    deleted: [...target.entries.keys()].filter((path) => !source.entries.has(path)),
    drop: [...target.changeSets.keys()],
    keep: [...source.changeSets.values()]
  }
}

function hashesOf({ entries, changeSets }: Checkpoint): Set<string> {
  const sides = [...changeSets.values()].flatMap(({ changes }) =>
    changes.flatMap(({ before, after }) => [before, after])
  )
  return new Set([...entries.values(), ...sides].flatMap((entry) => (entry?.type === 'file' ? [entry.hash] : [])))
}

function differs(sessionId: string): AppError {
  const message = `The files of the session ${sessionId.slice(0, 100)} differ after the copy: run the command again.`
  return new AppError('internal', 'migration_differs', message)
}
