import { createHash } from 'node:crypto'
import type { Checkpoint } from './checkpoint-store.ts'
import { CheckpointState } from './checkpoints/checkpoint-state.ts'

/** A checkpoint in memory, for tests that make many. It keeps content only while something names it, like the real one. */
export function fakeCheckpoint(maxHistoryBytes = Number.POSITIVE_INFINITY): Checkpoint {
  const state = new CheckpointState()
  const contents = new Map<string, Buffer>()
  const sizeOf = (hash: string) => {
    const bytes = contents.get(hash)?.length
    return bytes === undefined ? undefined : { length: bytes, stored: bytes }
  }
  return {
    entries: state.entries,
    changeSets: state.changeSets,
    get isThinned() {
      return state.isThinned
    },
    has: (hash) => contents.has(hash),
    async addBlob(content) {
      const bytes = content instanceof Uint8Array ? Buffer.from(content) : Buffer.concat(await chunksOf(content))
      const hash = createHash('sha256').update(bytes).digest('hex')
      contents.set(hash, bytes)
      return { hash, size: bytes.length }
    },
    async commit(delta) {
      const change = state.plan(delta, sizeOf)
      state.thin(change, { maxBytes: maxHistoryBytes, since: Number.NEGATIVE_INFINITY })
      state.apply(change, (hash) => ({ pack: '', offset: 0, ...(sizeOf(hash) ?? { length: 0, stored: 0 }) }))
      for (const hash of contents.keys()) if (!state.blobs.has(hash)) contents.delete(hash)
    },
    settle: async () => false,
    async *read(hash, chunkBytes) {
      const bytes = contents.get(hash)
      if (!bytes) throw new Error('no such content')
      for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
    },
    readSmall: async (hashes) => hashes.map((hash) => contents.get(hash)),
    close: async () => {}
  }
}

async function chunksOf(content: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(Buffer.from(chunk))
  return chunks
}
