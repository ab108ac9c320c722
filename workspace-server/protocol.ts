/**
 * The protocol between the orchestrator and the server inside the sandbox, beyond plain MCP: taking ownership, limits as seen
 * from inside, and moving the workspace's files out and in. It contains only types and names; neither side trusts the other.
 */

export const WORKSPACE_METHODS = {
  claim: 'workspace/claim',
  limits: 'workspace/limits',
  reach: 'workspace/reach',
  changes: 'workspace/changes',
  fetch: 'workspace/fetch',
  restore: 'workspace/restore',
  resolve: 'workspace/resolve',
  change: 'workspace/change',
  tidy: 'workspace/tidy'
} as const

/** Paths inside the image. */
export const INSIDE = {
  root: '/workspace',
  home: '/opt/mcp',
  /** An execute-only copy of the Node binary, which makes the server non-dumpable. */
  node: '/opt/mcp/node',
  /** A readable copy, for runtimes that refuse to run an unreadable file (gVisor). */
  readableNode: '/opt/mcp/bin/node',
  server: '/opt/mcp/server.mjs',
  /** An execute-only copy of bash. The first process of a container runs from it, for the same reason. */
  bash: '/opt/mcp/bash',
  /** Idle init: `idle SECONDS` ends when no server has been alive for that long. */
  idle: '/opt/mcp/idle',
  /** A small tmpfs for the server's own state: epochs and sign of life. */
  state: '/run/mcp',
  /** Tries the parts of the kernel that no namespace covers. Not available on every architecture. */
  kernelProbe: '/opt/mcp/kernel-probe'
} as const

/** `server.mjs egress` runs the relay of `egress-relay.ts` instead of the server. */
export const EGRESS = {
  command: 'egress',
  /** The proxy's port on the sandbox's own loopback. */
  port: 3128,
  origin: 'http://egress',
  authority: 'egress:80',
  /** Requested once the port is open. */
  ready: '/ready'
} as const

/** `server.mjs check` reads ReachParams from its input, prints a CheckResult, and ends. For containers without a workspace server. */
export const CHECK = { command: 'check' } as const

export interface CheckResult extends ReachResult {
  limits: LimitsResult
}

/** Exit codes of the server that its owner must distinguish. */
export const SERVER_EXIT = {
  staleEpoch: 77,
  takeoverFailed: 78,
  /** Started with --resume, but no epoch above 0 was ever seen here: the container was restarted and its files are gone. */
  nothingToResume: 79
} as const

/** Raises the epoch of a server that was started with a lower one (a warm one has 0). Refused if a higher one was seen. */
export interface ClaimParams {
  epoch: number
}

/** Limits as the kernel shows them inside; null if the kernel does not say (gVisor shows none of the cgroup's). */
export interface LimitsResult {
  uid: number
  memoryBytes: number | null
  pids: number | null
  /** The limit on processes of the user (RLIMIT_NPROC); null if there is none, or if the server does not say. */
  processLimit?: number | null
  cpus: number | null
  /** Network interfaces, including `lo`. */
  interfaces: string[]
  /** CapEff | CapPrm | CapBnd of /proc/self/status, as hex without leading zeros; "0" means none. */
  capabilities: string
  noNewPrivileges: boolean | null
  seccomp: number | null
  /** Reachable parts of the kernel that no namespace covers; null if that could not be tested. */
  openKernelParts: string[] | null
  rootWritable: boolean
  workspaceBytes: number
  workspaceInodes: number
}

/** A port that something is known to listen on. For UDP it must be a DNS server. */
export interface ReachTarget {
  protocol: 'tcp' | 'udp'
  /** An IP address. */
  host: string
  port: number
}

export interface ReachParams {
  targets: ReachTarget[]
  timeoutMs: number
}

export interface ReachResult {
  /** Indexes of the targets that accepted a connection or sent an answer. */
  reached: number[]
}

export const MAX_REACH_TARGETS = 32
export const MAX_REACH_MS = 5000

/**
 * A path relative to the workspace, with `/`. A name that is not valid UTF-8 is written as NUL + "b64:" + base64 of the path's
 * bytes. No file name contains NUL, so the two forms can't be confused.
 */
export type WorkspacePath = string

export type WorkspaceEntry =
  | { path: WorkspacePath; type: 'file'; mode: number; mtimeMs: number; size: number; hash: string }
  | { path: WorkspacePath; type: 'dir'; mode: number; mtimeMs: number }
  | { path: WorkspacePath; type: 'link'; target: string; mtimeMs: number }

/** `ack` is the `seq` of the last reply whose content is stored safely; later changes are reported again. */
export interface ChangesParams {
  ack: number
  /** Examine every file instead of trusting the notes on what changed. */
  full?: boolean
}

export interface ChangesResult {
  seq: number
  /** Small files have their content in `data`, as base64; the others are read with `fetch`. Parents come before children. */
  put: (WorkspaceEntry & { data?: string })[]
  deleted: WorkspacePath[]
  /** Files that are not stored, with the reason: sockets, fifos, files over the limits. */
  skipped: { path: WorkspacePath; reason: string }[]
  /** There is more: request it with `ack` = `seq`. */
  more: boolean
}

export interface FetchParams {
  path: WorkspacePath
  offset: number
  length: number
}

export interface FetchResult {
  /** Base64, without the bytes in `holes`. */
  data: string
  /** Runs of zeros in the range, in order; `at` counts from the requested offset. */
  holes: { at: number; length: number }[]
  eof: boolean
}

/**
 * Writes entries into the workspace: folders, links, and files whole or in parts. A part has `offset`. A file's times and mode
 * are set with every part, so the last one wins. Before that, what is at the paths in `deleted` is removed, in this order; a
 * folder must be empty by then. Both count as acknowledged.
 */
export interface RestoreParams {
  deleted?: WorkspacePath[]
  entries: RestoredEntry[]
  /**
   * The content of all entries with `bytes`, in their order. On the wire, `contentBytes` stands for it, and the bytes follow the
   * line as they are: with thousands of files, base64 and JSON would take longer than writing them. Use it only with a server
   * that has our version: an older one would read the bytes as lines.
   */
  content?: Uint8Array
}

/** `bytes` is how much of `content` it has. A file has either that or `data`, which is base64. */
export type RestoredEntry = WorkspaceEntry & { data?: string; bytes?: number; offset?: number }

export interface RestoreResult {
  /** `noRoom` means that it does not fit into this workspace. */
  failed: { path: WorkspacePath; reason: string; noRoom: boolean }[]
  /** How many of the paths in `deleted` are gone. A server that can't delete does not say. */
  removed?: number
}

/** Ends what commands have left running, and then empties the folders for temporary files. */
export interface TidyResult {
  /** False if something is left. */
  isTidy: boolean
}

/** Paths as a tool call names them; the reply says where each leads. */
export interface ResolveParams {
  paths: string[]
}

export const MAX_RESOLVED_PATHS = 100
/** Larger files have no hash: nobody is shown their content, and reading many of them would take too long. */
export const MAX_HASHED_BYTES = 1024 * 1024

/**
 * A change that a person makes in the workspace directly. `write` is for whole, small files: `data` is base64, and `expected` is the
 * SHA-256 (hex) of what the person saw, or null if there must be nothing yet.
 */
export type FileChange =
  | { kind: 'write'; path: string; data: string; expected: string | null }
  | { kind: 'move'; path: string; to: string }
  | { kind: 'folder' | 'delete'; path: string }

export interface FileChangeResult {
  /** Why nothing was changed. */
  problem?: { code: 'file_changed' | 'file_exists' | 'file_refused'; message: string }
}

/** The target of a path in a tool's arguments, with `..` and symbolic links resolved, and what is there. */
export interface PathTarget {
  /** Absolute and without links; null if no tool may use it. */
  path: string | null
  is: 'new' | 'file' | 'folder' | 'other' | 'unusable'
  /** The size, if it is a file. */
  bytes?: number
  /** SHA-256 (hex) of the content, if it is a file that a card can show. */
  hash?: string
  /** Whether the named path leads through a symbolic link. */
  throughLink?: true
  /** Why it is unusable. */
  problem?: string
}

/**
 * In `_meta` of `tools/call`: the target that a person approved. If the path leads elsewhere by now, or `is` is given and
 * something else is there, the tool does nothing and answers with an error whose data is a `TargetChanged`. So does a write that
 * would replace a file with another content than `hash`.
 */
export const TARGET_META = 'mcp-orchestrator/target'

export interface ExpectedTarget {
  path: string | null
  is?: PathTarget['is'] | undefined
  hash?: string | undefined
}

export interface TargetChanged {
  code: 'target_changed'
  target: PathTarget
}

/** `tools/call` of execute_command reports live output in progress notifications whose `message` is this, as JSON. */
export interface OutputChunk {
  stream: 'stdout' | 'stderr'
  text: string
}

/** Maximum number of concurrent commands in one sandbox. */
export const MAX_COMMANDS_AT_ONCE = 8
/** Maximum length of a JSON-RPC line in either direction, in bytes. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024
