/**
 * Checks at startup that the files in the bucket belong to this session store. A marker in the bucket names both the deployment and the
 * store's origin: a second store on the same files would take the objects of the first for garbage.
 */
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { contentOf, type ObjectStore } from '../objects/object-store.ts'
import type { SessionStore } from '../session-store.ts'

const MARKER = 'deployment.json'
const MAX_MARKER_BYTES = 4096

export interface Marker {
  /** The deployment. */
  id: string
  /** The id of the session store's origin, which changes when that is emptied. */
  origin: string
}

export async function readMarker(objects: Pick<ObjectStore, 'read'>, prefix: string): Promise<Marker | undefined> {
  const found = await objects.read(prefix + MARKER, 0, MAX_MARKER_BYTES)
  if (!found) return undefined
  const value: unknown = JSON.parse(found.bytes.toString())
  if (isRecord(value) && typeof value.id === 'string' && typeof value.origin === 'string') {
    return { id: value.id, origin: value.origin }
  }
  throw wrongBucket()
}

/** Throws `wrong_bucket` if these files belong to another session store, unless the operator has confirmed that they are ours. */
export async function claimBucket(
  objects: Pick<ObjectStore, 'read' | 'create' | 'put'>,
  prefix: string,
  sessions: Pick<SessionStore, 'deploymentId' | 'origin'>,
  isAccepted = false
): Promise<void> {
  const mine: Marker = { id: await sessions.deploymentId(), origin: (await sessions.origin()).id }
  const bytes = Buffer.from(JSON.stringify({ v: 1, ...mine }))
  if (isAccepted) await objects.put(prefix + MARKER, contentOf(bytes))
  else if (!(await readMarker(objects, prefix))) await objects.create(prefix + MARKER, bytes)
  const known = await readMarker(objects, prefix)
  if (known?.id !== mine.id || known.origin !== mine.origin) throw wrongBucket()
}

/** Throws `wrong_bucket` if there are files of another session store. Changes nothing. */
export async function checkBucketOwner(
  objects: Pick<ObjectStore, 'read'>,
  prefix: string,
  sessions: Pick<SessionStore, 'deploymentId' | 'origin'>
): Promise<void> {
  const known = await readMarker(objects, prefix)
  if (!known) return
  const isMine = known.id === (await sessions.deploymentId()) && known.origin === (await sessions.origin()).id
  if (!isMine) throw wrongBucket()
}

export function wrongBucket(): AppError {
  const message =
    'CHECKPOINT_STORE has files of another session store, or this one was emptied. Set CHECKPOINT_STORE to another prefix, or REDIS_URL and DEPLOYMENT to the ones that belong to it. If the session store was emptied or restored from a backup, start once with "serve --accept-data-dir": the files of sessions that it does not have are deleted after two days.'
  return new AppError('conflict', 'wrong_bucket', message)
}
