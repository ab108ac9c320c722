/**
 * Stores the files of every session in an object store, for machines that share no folder. Owns the objects and a cache on the local
 * disk; the session store owns the heads, which say what counts. Invariant: nothing is deleted here, except by the collector, and content
 * of a conversation that nothing names.
 */
import { AppError } from '../../lib/errors.ts'
import type { Checkpoint, CheckpointStore } from '../checkpoint-store.ts'
import { CheckpointState } from '../checkpoints/checkpoint-state.ts'
import { leaseLost } from '../store-errors.ts'
import { ObjectCheckpoint, type ObjectDeps, translateObjectError } from './object-checkpoint.ts'
import { ObjectContents } from './object-contents.ts'
import { decodeHead, loadState } from './object-manifest.ts'
import { sessionFolder } from './object-names.ts'

export interface ObjectCheckpointOptions extends ObjectDeps {
  /** The beginning of all keys; empty, or ends with a slash. */
  prefix: string
}

export function openObjectCheckpoints(options: ObjectCheckpointOptions): CheckpointStore {
  const { heads, prefix } = options
  const contents = new ObjectContents(options.objects, options.cache)
  const sizes = new HeadSizes(heads)
  return {
    open: (sessionId, epoch) => openCheckpoint(options, sessionId, epoch).catch(rethrown),
    has: async (sessionId) => (await heads.read(sessionId)) !== null,
    // Its objects are left to the collector.
    async remove(sessionId, epoch) {
      if (!(await heads.clear(sessionId, epoch))) throw leaseLost()
    },
    bytes: (sessionIds, maxAgeMs = 0) => sizes.of(sessionIds, maxAgeMs),
    putContent: (sessionId, bytes) => contents.put(sessionFolder(prefix, sessionId), bytes).catch(rethrown),
    getContent: (sessionId, hash) => contents.get(sessionFolder(prefix, sessionId), hash).catch(rethrown),
    removeContent: (sessionId, hash) => contents.remove(sessionFolder(prefix, sessionId), hash).catch(rethrown),
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

/** The sizes that the heads contain. All heads are read at once, because quotas ask about all sessions of an owner. */
class HeadSizes {
  readonly #heads: ObjectDeps['heads']
  #known: { bytes: Map<string, number>; at: number } | undefined

  constructor(heads: ObjectDeps['heads']) {
    this.#heads = heads
  }

  async of(sessionIds: readonly string[] | undefined, maxAgeMs: number): Promise<number> {
    const bytes = await this.#all(maxAgeMs)
    const wanted = sessionIds ? [...new Set(sessionIds)].map((id) => bytes.get(id) ?? 0) : [...bytes.values()]
    return wanted.reduce((sum, each) => sum + each, 0)
  }

  async #all(maxAgeMs: number): Promise<Map<string, number>> {
    const at = performance.now()
    if (this.#known && at - this.#known.at <= maxAgeMs) return this.#known.bytes
    const heads = await this.#heads.list()
    const bytes = new Map([...heads].map(([sessionId, text]) => [sessionId, decodeHead(text).bytes]))
    this.#known = { bytes, at }
    return bytes
  }
}

function rethrown(error: unknown): never {
  throw translateObjectError(error)
}
