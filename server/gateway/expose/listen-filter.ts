import { isRecord } from '../../lib/is-record.ts'
export interface Listen {
  id: unknown
  /** The resources that the client wants to hear about. */
  uris: string[]
}

const MAX_URIS = 200

/** Recognizes a client's subscription stream in the newer revision; the SDK serves it, and the servers must be told. */
export function listenOf(message: unknown): Listen | undefined {
  if (!isRecord(message) || message.method !== 'subscriptions/listen' || !isRecord(message.params)) return undefined
  const { notifications } = message.params
  const wanted = isRecord(notifications) ? notifications.resourceSubscriptions : undefined
  const uris = Array.isArray(wanted) ? wanted.filter((uri) => typeof uri === 'string').slice(0, MAX_URIS) : []
  return { id: message.id, uris }
}

/** The id of the cancelled request. */
export function cancelledOf(message: unknown): unknown {
  if (!isRecord(message) || message.method !== 'notifications/cancelled' || !isRecord(message.params)) return undefined
  return message.params.requestId
}
