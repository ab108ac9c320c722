/** Bodies of the HTTP API. */

export interface ModelsReply {
  default: string
  models: { id: string; name: string; provider: string }[]
  providers: { id: string; ok: boolean; reason?: string }[]
}

export interface SessionSummary {
  sessionId: string
  title: string
  model: string | null
  createdAt: number
  activeAt: number
  sandbox: 'none' | 'running' | 'paused' | 'recycled'
  /** ms until it is recycled; null when it has no sandbox. */
  recycleInMs: number | null
  pendingApprovals: number
}

export interface NewSessionReply {
  sessionId: string
  /** Shown once. */
  token: string
}

export interface ErrorReply {
  error: { code: string; message: string }
}
