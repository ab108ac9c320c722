/** The caller of a tool. It decides whose credentials and connections are used, and the audit log records it. */
export interface Caller {
  /** `local` for the user who started this process; over HTTP, the owner that the request has proved to be. */
  owner: string
  door: 'stdio' | 'http' | 'chat'
  /** The chat's session. */
  session?: string | undefined
  /** The name that the client gives itself, as `name/version`. Never trust it. */
  client?: string | undefined
  /** Set for a client that needs connections of its own, because servers send requests back to it. No other client shares them. */
  laneId?: string | undefined
}

/** The owner for calls by the user who started this process. */
export const LOCAL_OWNER = 'local'

/** Finds the owner of a request from its cookies. */
export type OwnerOf = (cookies: string | undefined) => string
