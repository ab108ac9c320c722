/** The object store of a deployment, with the client that talks to it. It is loaded only if CHECKPOINT_STORE is set. */
import type { Logger } from '../../lib/logger.ts'
import type { Operation } from '../../lib/observed.ts'
import type { CheckpointStore } from '../checkpoint-store.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import { S3ObjectStore, type S3Options } from '../objects/s3-object-store.ts'
import type { Store } from '../store.ts'
import { checkBucketOwner, claimBucket, type Marker, readMarker } from './claim-bucket.ts'
import { Collector, type CollectorDeps } from './collector.ts'
import { ObjectCache } from './object-cache.ts'
import type { ObjectDeps } from './object-checkpoint.ts'
import { parseAddress, parseName, sessionFolder } from './object-names.ts'
import { openObjectCheckpoints } from './open-object-checkpoints.ts'

export interface BucketOptions extends Omit<S3Options, 'bucket' | 'report'> {
  /** `s3://bucket/prefix`. */
  address: string
  /** The folder and the size of the cache. */
  cache: { dir: string; maxBytes: number }
  report: (operation: Operation) => void
  /** Called for each object that was needed, and was in the cache or not. */
  looked: (isHit: boolean) => void
  logger: Logger
}

export class Bucket {
  readonly objects: ObjectStore
  readonly prefix: string
  readonly #cache: ObjectCache

  constructor({ cache, looked, logger, ...options }: BucketOptions) {
    const { bucket, prefix } = parseAddress(options.address)
    this.objects = new S3ObjectStore({ ...options, bucket })
    this.prefix = prefix
    this.#cache = new ObjectCache({ ...cache, objects: this.objects, looked, logger })
  }

  /** The installation whose files are here, if there are any. */
  owner(): Promise<Marker | undefined> {
    return readMarker(this.objects, this.prefix)
  }

  /** Throws `wrong_bucket` if these files belong to another store, unless the operator has confirmed that they are ours. */
  claim({ sessions }: Pick<Store, 'sessions'>, isAccepted: boolean): Promise<void> {
    return claimBucket(this.objects, this.prefix, sessions, isAccepted)
  }

  /** Throws `wrong_bucket` if these files belong to another store. */
  checkOwner({ sessions }: Pick<Store, 'sessions'>): Promise<void> {
    return checkBucketOwner(this.objects, this.prefix, sessions)
  }

  /** The hashes of the contents that the conversation of a session names. */
  async contentHashes(sessionId: string): Promise<string[]> {
    const folder = sessionFolder(this.prefix, sessionId)
    const hashes = new Set<string>()
    for (let from: string | undefined; ; ) {
      const { found, next } = await this.objects.list(folder, from)
      const names = found.map(({ key }) => parseName(key.slice(folder.length)))
      for (const name of names) if (name?.kind === 'content') hashes.add(name.hash)
      from = next
      if (from === undefined) return [...hashes]
    }
  }

  openCheckpoints(
    { sessions, heads, keyValues }: Pick<Store, 'sessions' | 'heads' | 'keyValues'>,
    limits: Pick<ObjectDeps, 'maxBytes' | 'history' | 'logger'>
  ): CheckpointStore {
    const { objects, prefix } = this
    return openObjectCheckpoints({ objects, prefix, cache: this.#cache, heads, sessions, keyValues, ...limits })
  }

  collector(
    { sessions, heads, keyValues }: Store,
    others: Pick<CollectorDeps, 'sessionIds' | 'namedContents' | 'instanceId' | 'logger'>
  ): Collector {
    const { objects, prefix } = this
    return new Collector({ objects, prefix, heads, keyValues, sessions, ...others })
  }
}
