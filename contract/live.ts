/** The messages of the server: stored events under their own names (with `seq` and `at`), and events that are only published. */
import type { Ack, CommandInput, CommandName } from './commands.ts'
import type { EventData, EventType, ServerLogLine } from './events.ts'
import type { SessionSummary } from './rest.ts'
import type { CallEntry, Transcript } from './transcript.ts'

export type SandboxState = 'none' | 'starting' | 'running' | 'paused' | 'recycled'

export interface SessionState {
  sandbox: SandboxState
  /** Milliseconds until the sandbox is recycled if nothing happens; null if there is no sandbox. */
  recycleInMs: number | null
  /** The network that commands in the sandbox can reach: `none`, or its name. */
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
  /** Older entries are left out; `GET /api/sessions/:id/entries?before=` with this `seq` returns them. */
  olderBefore?: number
}

export interface Progress {
  /** Progress of startup: connecting to the engine, building the image, listing models. */
  stage: 'engine' | 'image' | 'models' | 'ready'
  message: string
}

type StoredToClient = {
  [T in EventType]: (event: Omit<EventData<T>, 'parts' | 'values'> & { seq: number; at: number }) => void
}

export interface ServerToClient extends Omit<StoredToClient, 'agent:error'> {
  /** Without `seq`, it is not stored: the answer to a command that was sent without an ack and failed. */
  'agent:error': (error: EventData<'agent:error'> & { seq?: number; at?: number }) => void
  'system:ready': (ready: Ready) => void
  'session:snapshot': (snapshot: Snapshot) => void
  'agent:thinking': (data: { turnId: string }) => void
  'agent:delta': (data: { turnId: string; text: string }) => void
  /** The answer from its beginning, for clients that connect while it is streamed. It replaces the deltas before it. */
  'agent:text': (data: { turnId: string; text: string }) => void
  /**
   * A piece of the model's reasoning. `at` is the position of the piece in the whole: 0 for the first one, and when it is sent from its
   * beginning to clients that connect meanwhile. `ms` is how long the model has been thinking.
   */
  'agent:reasoning': (data: { turnId: string; text: string; at: number; ms: number }) => void
  /** `at`: how many characters the call has written before. */
  'tool:output': (data: { callId: string; stream: 'stdout' | 'stderr'; text: string; at: number }) => void
  /** The end of what a running call has written, for clients that connect meanwhile. It replaces the output before it. */
  'tool:output_so_far': (data: {
    callId: string
    chunks: { stream: 'stdout' | 'stderr'; text: string }[]
    at: number
  }) => void
  /** How far the MCP server of a running call is. `total` is missing if the server does not know it. */
  'tool:progress': (data: { callId: string; progress: number; total?: number; message?: string }) => void
  /** Log lines from the MCP server of a running call. With `isWhole`, the lines replace those before. */
  'tool:log': (data: { callId: string; lines: ServerLogLine[]; isWhole?: true }) => void
  /** The server lost its state and this session, and closes the connection. The client opens a new session. */
  'session:lost': (data: { message: string }) => void
  'session:state': (state: SessionState) => void
  'system:progress': (progress: Progress) => void
  /** Sent to all tabs of the owner: a session was changed, used or deleted, or calls in it need approval or were decided. */
  'session:changed': (data: { sessionId: string; summary: SessionSummary | null }) => void
  /** The calls of outside clients that need approval have changed. */
  'inbox:changed': (data: { ids: string[] }) => void
}

export type ClientToServer = {
  [C in CommandName]: (input: CommandInput<C>, ack: (reply: Ack) => void) => void
}
