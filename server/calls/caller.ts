/** Who makes a call: it decides whose credentials are used and whose connections, and is what the audit trail names. */
export interface Caller {
  /** `local` is whoever started this process; over HTTP the owner that the request has proved to be. */
  owner: string
  door: 'stdio' | 'http' | 'chat'
  /** The chat's session. */
  session?: string | undefined
  /** The client's own word for itself, `name/version`; never an authority. */
  client?: string | undefined
  /** Set by a client that needs connections of its own, because servers ask it back: they are shared with no other. */
  laneId?: string | undefined
}

/** Whoever started this process. */
export const LOCAL_OWNER = 'local'

/** Tells whom a request has proved to be, from its cookies. */
export type OwnerOf = (cookies: string | undefined) => string
