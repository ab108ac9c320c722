/**
 * Claims the bucket of a move's target. Invariant: a bucket that has an owner is taken only if an interrupted or unused move to the same
 * target claimed it. The data folder of the target has the origin of each of these moves.
 */
import { existsSync, readFileSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { wrongBucket } from '../../storage/object-checkpoints/claim-bucket.ts'
import type { Bucket } from '../../storage/object-checkpoints/open-bucket.ts'
import type { Store } from '../../storage/store.ts'

const NOTES = 'claimed-bucket'

/** Throws `wrong_bucket` if the bucket belongs to another installation. Returns whether it belongs to an earlier move. */
export async function checkClaim(bucket: Bucket, dataDir: string, isRepeated: boolean): Promise<boolean> {
  const owner = await bucket.owner()
  if (owner === undefined) return false
  const path = join(dataDir, NOTES)
  const claimed = isRepeated && existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  if (!claimed.includes(owner.origin)) throw wrongBucket()
  return true
}

export async function claimForMove(bucket: Bucket, store: Store, dataDir: string, isRepeated: boolean): Promise<void> {
  const isOurs = await checkClaim(bucket, dataDir, isRepeated)
  const { id } = await store.sessions.origin()
  await appendFile(join(dataDir, NOTES), `${id}\n`, { mode: 0o600, flush: true })
  await bucket.claim(store, isOurs)
}
