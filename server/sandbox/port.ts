/**
 * The port for session sandboxes: a place to run one session's tools. Owns containers and the streams into them; does not know
 * about sessions, stores or checkpoints. Every method has its own deadline and throws AppError.
 */
import type {
  ChangesParams,
  ChangesResult,
  ExpectedTarget,
  FetchParams,
  FetchResult,
  FileChange,
  FileChangeResult,
  LimitsResult,
  OutputChunk,
  PathTarget,
  ReachParams,
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
  /** OCI runtime (`runsc`); defaults to the engine's own. */
  runtime?: string
  /** The user ids for containers; defaults to DEFAULT_UIDS. */
  uids?: UidRange
}

/** The instance that created a container and its deployment; stored as labels. */
export interface SandboxOwner {
  deployment: string
  instance: string
}

export interface EngineStatus {
  /** `Docker` or `Kubernetes`. */
  name: string
  version: string
  runtimes: string[]
  /** Empty if the engine does not say. */
  cgroupVersion: string
  containers: number
  /** The engine runs without root, or remaps the users of containers, so it has only some user ids. */
  remapsUsers: boolean
}

export interface ContainerSummary {
  id: string
  instance: string
  createdAt: number
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
  /** The target that the path of this call must lead to. If it leads elsewhere, nothing is done and `target_changed` is thrown. */
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

/** A live MCP connection to the server inside one container, fenced by the epoch with which it was opened. */
export interface WorkspaceConnection {
  readonly containerId: string
  /** Resolves once, when the stream has ended for any reason; never rejects. */
  readonly closed: Promise<void>
  readonly isOpen: boolean
  /** Whether a process inside has tried to imitate the server. None of that was accepted. */
  readonly isTampered: boolean
  listTools(): Promise<ToolDefinition[]>
  /** Throws `connection_lost` if the stream ends before the answer; the outcome is then unknown. */
  callTool(name: string, args: Record<string, unknown>, options: CallOptions): Promise<ToolResult>
  /** Throws `stale_epoch` if the container has seen a higher epoch. */
  claim(epoch: number): Promise<void>
  limits(): Promise<LimitsResult>
  /** Returns the indexes of the targets that the sandbox reaches. Ask before any command has run. */
  reach(params: ReachParams): Promise<number[]>
  changes(params: ChangesParams): Promise<ChangesResult>
  fetch(params: FetchParams): Promise<FetchResult>
  restore(params: RestoreParams): Promise<RestoreResult>
  /** Resolves the paths of tool arguments, in the same order. */
  resolve(paths: string[]): Promise<PathTarget[]>
  /** Makes a change that a person asked for. */
  change(change: FileChange): Promise<FileChangeResult>
  /** Ends what commands have left running, and empties the folders for temporary files. Returns false if something is left. */
  tidy(): Promise<boolean>
  ping(): Promise<void>
  close(): Promise<void>
}

export interface SandboxEngine {
  /** Whether all instances of a deployment see the same containers, so that one of them can clean up for all. */
  readonly isShared?: boolean
  /** Throws `engine_unavailable`, which says what to do. */
  status(): Promise<EngineStatus>
  /** Makes sure that the image exists, builds it if it is missing, and returns its name. Concurrent calls share one build. */
  ensureImage(onProgress?: (line: string) => void): Promise<string>
  hasImage(): Promise<boolean>
  /** Waits until the build that is under way has ended, also if it failed. Returns false at once if there is none. */
  waitForBuild(): Promise<boolean>
  /** Creates and starts a container with an idle init; returns its id. Leaves nothing behind when it fails. */
  create(owner: SandboxOwner): Promise<string>
  /**
   * Ends any server in the container, with all its processes, and starts one with this epoch. With `resume`, throws conflict
   * `container_restarted` unless the container still has what an earlier owner left in it (a restart empties the tmpfs).
   */
  connect(containerId: string, epoch: number, options?: { resume?: boolean }): Promise<WorkspaceConnection>
  /** Returns null if there is no such container. */
  inspect(containerId: string): Promise<ContainerState | null>
  /** Undefined if the engine can't pause. The session then saves its files and gives up the container instead. */
  pause?(containerId: string): Promise<void>
  unpause?(containerId: string): Promise<void>
  /** Removes a container in any state. Returns false if it is already gone or another call removes it. */
  remove(containerId: string): Promise<boolean>
  /** Lists the containers of a deployment, in any state; those of one instance if it is named. */
  list(deployment: string, instance?: string): Promise<ContainerSummary[]>
  /**
   * Removes what earlier processes left behind that no deployment lists, and prepares what this deployment shares. Missing if there is
   * nothing of that kind.
   */
  sweep?(deployment: string): Promise<void>
  /** Throws `limits_not_enforced` if the container sees other limits than those requested. */
  verifyLimits(connection: WorkspaceConnection): Promise<LimitsResult>
  /** The beginning of a shutdown: gives up what has not started yet, and starts nothing more. Missing if all starts are short. */
  stopStarting?(): void
  close(): Promise<void>
}
