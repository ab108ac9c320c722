/** An MCP server as the registry knows it: what to start or to reach, and what its owner says about it. */

import type { ApprovalRule } from '../../contract/approval-rule.ts'

export interface OperationTimeouts {
  startMs: number
  listMs: number
  callMs: number
}

export interface SandboxRequest {
  image?: string
  /** The hosts that it may reach, as `host-pattern.ts` reads them; none when there is none. */
  network?: string[]
  /** What it may read of this machine, beside `cwd`. */
  folders?: string[]
  memoryMb?: number
  cpus?: number
}

export interface EntryBase {
  name: string
  /** Where it stands in the file. */
  line: number
  enabled: boolean
  description?: string
  keywords: string[]
  examples: string[]
  timeouts: OperationTimeouts
  idleMs: number
  instances: number
  alternatives: string[]
  /** By glob of tool names. */
  approval: Record<string, ApprovalRule>
  /** Globs of tool names that the owner says only read: a sentence may run them. */
  readOnly: string[]
  /** Changes when, and only when, a running child must be replaced. */
  fingerprint: string
}

export interface LocalEntry extends EntryBase {
  kind: 'local'
  command: string
  args: string[]
  /** With its placeholders; they are filled when the child is started, never before. */
  env: Record<string, string>
  cwd?: string
  sandbox?: SandboxRequest
}

export interface RemoteEntry extends EntryBase {
  kind: 'remote'
  url: string
  headers: Record<string, string>
  /** The transport of the first revision, for servers that never moved on. */
  sse: boolean
}

export type ServerEntry = LocalEntry | RemoteEntry

export const DEFAULT_TIMEOUTS: OperationTimeouts = { startMs: 30_000, listMs: 10_000, callMs: 120_000 }
export const DEFAULT_IDLE_MS = 300_000
