import { isRecord } from '../../lib/is-record.ts'
export interface Listen {
  id: unknown
  /** The resources that it wants to hear of. */
  uris: string[]
}

const MAX_URIS = 200

/** A client of the new revision opens a stream of news; the SDK serves it, and the servers have to be told. */
export function listenOf(message: unknown): Listen | undefined {
  if (!isRecord(message) || message.method !== 'subscriptions/listen' || !isRecord(message.params)) return undefined
  const { notifications } = message.params
  const wanted = isRecord(notifications) ? notifications.resourceSubscriptions : undefined
  const uris = Array.isArray(wanted) ? wanted.filter((uri) => typeof uri === 'string').slice(0, MAX_URIS) : []
  return { id: message.id, uris }
}

/** The id of the request that is taken back. */
export function cancelledOf(message: unknown): unknown {
  if (!isRecord(message) || message.method !== 'notifications/cancelled' || !isRecord(message.params)) return undefined
  return message.params.requestId
}
