import { isRecord } from '../../lib/is-record.ts'
import type { Json } from '../../storage/key-value-store.ts'

/** The source of a session's title. A model never overwrites a person's title. */
export type TitleBy = 'person' | 'model' | 'words'

/** The stored data of a session outside its conversation. */
export interface StoredMeta {
  owner: string | null
  /** The address from which it was opened, as a hash; null for sessions from before addresses were stored. */
  address: string | null
  token: string | null
  title: string
  titleBy: TitleBy
  createdAt: number
  /** Null if it is not pinned, or not archived. */
  pinnedAt: number | null
  archivedAt: number | null
  /** It is hidden, and will be deleted for good unless its owner brings it back in time. */
  isDeleted: boolean
}

/** The data of a session that the list needs. */
export interface SessionMeta
  extends Pick<StoredMeta, 'title' | 'titleBy' | 'createdAt' | 'pinnedAt' | 'archivedAt' | 'isDeleted'> {
  sessionId: string
  /** When it was last used; null if an earlier version opened it and nothing has happened in it since. */
  usedAt: number | null
}

export function readMeta(value: Json): StoredMeta | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const { owner, address, token, title, titleBy, createdAt, pinnedAt, archivedAt, isDeleted } = value
  return {
    owner: typeof owner === 'string' ? owner : null,
    address: typeof address === 'string' ? address : null,
    token: typeof token === 'string' ? token : null,
    title: String(title ?? ''),
    // Earlier versions did not record it, so it may be the person's.
    titleBy: titleBy === 'model' || titleBy === 'words' ? titleBy : 'person',
    createdAt: Number(createdAt),
    pinnedAt: typeof pinnedAt === 'number' ? pinnedAt : null,
    archivedAt: typeof archivedAt === 'number' ? archivedAt : null,
    isDeleted: isDeleted === true
  }
}

/** `used` is the value beside the session's id in its owner's list. Earlier versions stored another one there. */
export function metaOf(sessionId: string, meta: StoredMeta, used: Json): SessionMeta {
  const { title, titleBy, createdAt, pinnedAt, archivedAt, isDeleted } = meta
  const usedAt = isRecord(used) && typeof used.usedAt === 'number' ? used.usedAt : null
  return { sessionId, title, titleBy, createdAt, pinnedAt, archivedAt, isDeleted, usedAt }
}
