/** What the server sends: stored events under their own names (with `seq` and `at`), and what is only published. */
import type { Ack, CommandInput, CommandName } from './commands.ts'
import type { EventData, EventType } from './events.ts'
import type { CallEntry, Transcript } from './transcript.ts'

export type SandboxState = 'none' | 'starting' | 'running' | 'paused' | 'recycled'

export interface SessionState {
  sandbox: SandboxState
  /** ms until the sandbox is recycled if nothing happens; null when there is none. */
  recycleInMs: number | null
  /** What commands in it can reach: `none`, or the name of a network. */
  network: string
}

export interface Ready {
  sessionId: string
  /** Shown once, to the client that opened the session without a cookie. */
  token?: string
  provider: string
  model: string
}

export interface Snapshot {
  seq: number
  transcript: Transcript
  pendingApprovals: CallEntry[]
  state: SessionState
  /** There are older entries, which the transcript leaves out: `GET /api/sessions/:id/entries?before=` this `seq` has them. */
  olderBefore?: number
}

export interface Progress {
  /** What is going on: the engine is looked for, the image is built, models are asked for. */
  stage: 'engine' | 'image' | 'models' | 'ready'
  message: string
}

type StoredToClient = {
  [T in EventType]: (event: Omit<EventData<T>, 'parts'> & { seq: number; at: number }) => void
}

export interface ServerToClient extends StoredToClient {
  'system:ready': (ready: Ready) => void
  'session:snapshot': (snapshot: Snapshot) => void
  'agent:thinking': (data: { turnId: string }) => void
  'agent:delta': (data: { turnId: string; text: string }) => void
  'tool:output': (data: { callId: string; stream: 'stdout' | 'stderr'; text: string }) => void
  /** The server lost its state, and this session with it; it hangs up. The client opens a new session. */
  'session:lost': (data: { message: string }) => void
  'session:state': (state: SessionState) => void
  'system:progress': (progress: Progress) => void
}

export type ClientToServer = {
  [C in CommandName]: (input: CommandInput<C>, ack: (reply: Ack) => void) => void
}
