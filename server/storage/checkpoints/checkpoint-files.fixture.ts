/** A checkpoint store in its own folder, with functions that look at it from outside, for the tests of this folder. */

import { createHash } from 'node:crypto'
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { Checkpoint, CheckpointStore } from '../checkpoint-store.ts'
import { openCheckpointStore } from './checkpoint-files.ts'

export const MB = 1024 * 1024
/** The message of the error after a lost answer of the session store. */
export const LOST_ANSWER = 'no answer'

export class CheckpointFixture {
  readonly dir = temporaryFolder()
  readonly store: CheckpointStore = this.storeOf(64 * MB)

  storeOf(maxSessionBytes: number, dir = this.dir): CheckpointStore {
    return openCheckpointStore({ dir, maxSessionBytes, logger: silentLogger })
  }

  dispose(): void {
    rmSync(this.dir, { recursive: true, force: true })
  }

  /** The folder of the only session. */
  sessionDir(root = this.dir): string {
    const [name] = readdirSync(root)
    if (!name) throw new Error('no session folder')
    return join(root, name)
  }

  /** Paths of the session's files with this extension. */
  stored(ext: string, root = this.dir): string[] {
    const folder = this.sessionDir(root)
    return readdirSync(folder)
      .filter((name) => name.endsWith(ext))
      .map((name) => join(folder, name))
  }

  weight(ext: string): number {
    return this.stored(ext).reduce((sum, path) => sum + statSync(path).size, 0)
  }

  async filesAt(epoch: number, session = 's', from = this.store): Promise<Record<string, string>> {
    const checkpoint = await from.open(session, epoch)
    try {
      return await files(checkpoint)
    } finally {
      await checkpoint.close()
    }
  }
}

export const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

export function fileEntry(path: string, content: Uint8Array, mode = 0o644): WorkspaceEntry {
  return { path, type: 'file', mode, mtimeMs: 1, size: content.length, hash: sha256(content) }
}

export async function* chunked(content: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size)
}

export async function put(checkpoint: Checkpoint, files: Record<string, string | Uint8Array>, deleted: string[] = []) {
  const entries: WorkspaceEntry[] = []
  for (const [path, text] of Object.entries(files)) {
    const content = typeof text === 'string' ? Buffer.from(text) : text
    await checkpoint.addBlob(content)
    entries.push(fileEntry(path, content))
  }
  await checkpoint.commit({ put: entries, deleted })
}

export async function contentOf(checkpoint: Checkpoint, hash: string, chunkBytes = 64 * 1024): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of checkpoint.read(hash, chunkBytes)) {
    if (chunk.length > chunkBytes) throw new Error('a chunk is too long')
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks)
}

/** Reads all paths and contents. */
export async function files(checkpoint: Checkpoint): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [path, entry] of checkpoint.entries) {
    found[path] = entry.type === 'file' ? (await contentOf(checkpoint, entry.hash)).toString() : entry.type
  }
  return found
}
