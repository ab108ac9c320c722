export interface Listen {
  id: unknown
  /** The resources that it wants to hear of. */
  uris: string[]
}

const MAX_URIS = 200

/** A client of the new revision opens a stream of news; the SDK serves it, and the servers have to be told. */
export function listenOf(message: unknown): Listen | undefined {
  if (!isObject(message) || message.method !== 'subscriptions/listen' || !isObject(message.params)) return undefined
  const { notifications } = message.params
  const wanted = isObject(notifications) ? notifications.resourceSubscriptions : undefined
  const uris = Array.isArray(wanted) ? wanted.filter((uri) => typeof uri === 'string').slice(0, MAX_URIS) : []
  return { id: message.id, uris }
}

/** The id of the request that is taken back. */
export function cancelledOf(message: unknown): unknown {
  if (!isObject(message) || message.method !== 'notifications/cancelled' || !isObject(message.params)) return undefined
  return message.params.requestId
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
