/**
 * The sandbox as the rest of the house sees it: a place to run one session's tools. Owns containers and the streams into
 * them; knows nothing of sessions, stores or checkpoints. Every method has a deadline of its own and throws AppError.
 */
import type {
  ChangesParams,
  ChangesResult,
  ExpectedTarget,
  FetchParams,
  FetchResult,
  LimitsResult,
  OutputChunk,
  PathTarget,
  RestoreParams,
  RestoreResult
} from '../../workspace-server/protocol.ts'
import type { UidRange } from './uid-range.ts'

export interface SandboxLimits {
  memoryMb: number
  cpus: number
  pids: number
  workspaceMb: number
  /** `none`, or the name of an engine network. */
  network: string
  /** OCI runtime (`runsc`); undefined is the engine's default. */
  runtime?: string
  /** The user ids that containers are given; undefined: the default. */
  uids?: UidRange
}

/** Who made a container and for which installation; becomes labels. */
export interface SandboxOwner {
  deployment: string
  instance: string
}

export interface EngineStatus {
  version: string
  runtimes: string[]
  cgroupVersion: string
  containers: number
  /** It runs without root, or maps the users of containers to others: it has only some user ids. */
  remapsUsers: boolean
}

export interface ContainerSummary {
  id: string
  deployment: string
  instance: string
  createdAt: number
  state: 'created' | 'running' | 'paused' | 'exited' | 'dead' | string
}

export interface ContainerState {
  running: boolean
  paused: boolean
  oomKilled: boolean
  exitCode: number
}

export interface CallOptions {
  signal?: AbortSignal | undefined
  timeoutMs: number
  onOutput?: ((chunk: OutputChunk) => void) | undefined
  /** What the path of this call must lead to; if it does not, nothing is done and `target_changed` is thrown. */
  expected?: ExpectedTarget | undefined
}

export interface ToolResult {
  content: unknown[]
  structuredContent?: Record<string, unknown> | undefined
  isError?: boolean | undefined
}

export interface ToolDefinition {
  name: string
  description?: string | undefined
  inputSchema: Record<string, unknown>
  annotations?: Record<string, unknown> | undefined
}

/** A live MCP connection to the server inside one container, fenced by the epoch it was opened with. */
export interface WorkspaceConnection {
  readonly containerId: string
  /** Resolves once, when the stream has ended for whatever reason; never rejects. */
  readonly closed: Promise<void>
  readonly isOpen: boolean
  /** Someone inside has spoken in the server's name. Nothing of it was believed. */
  readonly isTampered: boolean
  listTools(): Promise<ToolDefinition[]>
  /** Throws `connection_lost` when the stream ends before the answer: the outcome is then unknown. */
  callTool(name: string, args: Record<string, unknown>, options: CallOptions): Promise<ToolResult>
  /** Throws `stale_epoch` when the container has seen a higher one. */
  claim(epoch: number): Promise<void>
  limits(): Promise<LimitsResult>
  changes(params: ChangesParams): Promise<ChangesResult>
  fetch(params: FetchParams): Promise<FetchResult>
  restore(params: RestoreParams): Promise<RestoreResult>
  /** Where paths of tool arguments lead, in the same order. */
  resolve(paths: string[]): Promise<PathTarget[]>
  ping(): Promise<void>
  /** The tail of what the server wrote to stderr. */
  stderr(): string
  close(): Promise<void>
}

export interface SandboxEngine {
  /** Throws `engine_unavailable` with what to do. */
  status(): Promise<EngineStatus>
  /** Makes sure of the image, building it when missing, and returns its name. Concurrent calls share one build. */
  ensureImage(onProgress?: (line: string) => void): Promise<string>
  hasImage(): Promise<boolean>
  /** Creates and starts a container with an idle init; returns its id. Leaves nothing behind when it fails. */
  create(owner: SandboxOwner): Promise<string>
  /**
   * Ends whatever server runs in the container, with all its processes, and starts one under this epoch. With `resume`, throws
   * conflict `container_restarted` unless the container still has what an earlier owner left in it (a restart empties the tmpfs).
   */
  connect(containerId: string, epoch: number, options?: { resume?: boolean }): Promise<WorkspaceConnection>
  /** null: there is no such container. */
  inspect(containerId: string): Promise<ContainerState | null>
  pause(containerId: string): Promise<void>
  unpause(containerId: string): Promise<void>
  /** Removes it whatever its state; a container that is gone already is no error. */
  remove(containerId: string): Promise<void>
  /** The containers of a deployment, in any state. */
  list(deployment: string): Promise<ContainerSummary[]>
  /** Throws `limits_not_enforced` when what the container sees is not what was asked for. */
  verifyLimits(connection: WorkspaceConnection): Promise<LimitsResult>
  close(): Promise<void>
}
