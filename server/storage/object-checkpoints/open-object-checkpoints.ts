/**
 * Stores the files of every session in an object store, for machines that share no folder. Owns the objects and a cache on the local
 * disk; the session store owns the heads, which say what counts. Invariant: only the collector deletes.
 */
import { AppError } from '../../lib/errors.ts'
import type { Checkpoint, CheckpointStore } from '../checkpoint-store.ts'
import { CheckpointState } from '../checkpoints/checkpoint-state.ts'
import { leaseLost } from '../store-errors.ts'
import { ContentSums, type SumStore } from './content-sums.ts'
import { ObjectCheckpoint, type ObjectDeps, translateObjectError } from './object-checkpoint.ts'
import { ObjectContents } from './object-contents.ts'
import { decodeHead, loadState } from './object-manifest.ts'
import { sessionFolder } from './object-names.ts'

export interface ObjectCheckpointOptions extends ObjectDeps {
  /** The beginning of all keys; empty, or ends with a slash. */
  prefix: string
  keyValues: SumStore
}

export function openObjectCheckpoints(options: ObjectCheckpointOptions): CheckpointStore {
  const { heads, prefix } = options
  const sums = new ContentSums(options.keyValues)
  const contents = new ObjectContents(options.objects, options.cache, sums)
  const sizes = new Sizes(heads, sums, prefix)
  return {
    open: (sessionId, epoch) => openCheckpoint(options, sessionId, epoch).catch(rethrown),
    has: async (sessionId) => (await heads.read(sessionId)) !== null,
    // Its objects are left to the collector.
    async remove(sessionId, epoch) {
      if (!(await heads.clear(sessionId, epoch))) throw leaseLost()
      await sums.remove(sessionFolder(prefix, sessionId))
    },
    bytes: (sessionIds, maxAgeMs = 0) => sizes.of(sessionIds, maxAgeMs),
    putContent: (sessionId, bytes) => contents.put(sessionFolder(prefix, sessionId), bytes).catch(rethrown),
    getContent: (sessionId, hash) => contents.get(sessionFolder(prefix, sessionId), hash).catch(rethrown),
    removeContent: (sessionId, hash) => contents.forget(sessionFolder(prefix, sessionId), hash).catch(rethrown),
    prune: async () => 0
  }
}

async function openCheckpoint(options: ObjectCheckpointOptions, sessionId: string, epoch: number): Promise<Checkpoint> {
  if (!Number.isSafeInteger(epoch) || epoch < 0) {
    throw new AppError('invalid', 'invalid_epoch', 'An epoch must be a whole number, 0 or more.')
  }
  const folder = sessionFolder(options.prefix, sessionId)
  const stored = await options.heads.read(sessionId)
  const head = stored === null ? undefined : decodeHead(stored)
  // A former owner must not take newer files for its own.
  if (head && head.epoch > epoch) throw leaseLost()
  const loaded = head
    ? await loadState(options.cache, folder, head)
    : { state: new CheckpointState(), tail: Buffer.alloc(0) }
  return new ObjectCheckpoint(options, { sessionId, epoch, folder, stored, head, ...loaded })
}

/** Adds what the heads and the sums say. All are read at once, because quotas ask about all sessions of an owner. */
class Sizes {
  readonly #heads: ObjectDeps['heads']
  readonly #sums: ContentSums
  readonly #prefix: string
  /** By folder. */
  #known: { bytes: Map<string, number>; at: number } | undefined

  constructor(heads: ObjectDeps['heads'], sums: ContentSums, prefix: string) {
    this.#heads = heads
    this.#sums = sums
    this.#prefix = prefix
  }

  async of(sessionIds: readonly string[] | undefined, maxAgeMs: number): Promise<number> {
    const bytes = await this.#all(maxAgeMs)
    const wanted = sessionIds
      ? [...new Set(sessionIds)].map((id) => bytes.get(sessionFolder(this.#prefix, id)) ?? 0)
      : [...bytes.values()]
    return wanted.reduce((sum, each) => sum + each, 0)
  }

  async #all(maxAgeMs: number): Promise<Map<string, number>> {
    const at = performance.now()
    if (this.#known && at - this.#known.at <= maxAgeMs) return this.#known.bytes
    const [heads, bytes] = await Promise.all([this.#heads.list(), this.#sums.all()])
    for (const [sessionId, text] of heads) {
      const folder = sessionFolder(this.#prefix, sessionId)
      bytes.set(folder, (bytes.get(folder) ?? 0) + decodeHead(text).bytes)
    }
    this.#known = { bytes, at }
    return bytes
  }
}

function rethrown(error: unknown): never {
  throw translateObjectError(error)
}
