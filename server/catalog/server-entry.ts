/** An entry of the registry: what to start or to reach, and what its owner says about it. */

import type { ApprovalRule } from '../../contract/servers/approval-rule.ts'

export interface OperationTimeouts {
  startMs: number
  listMs: number
  callMs: number
}

export interface SandboxRequest {
  image?: string
  /** Patterns of the hosts that it may reach, for `host-pattern.ts`; without any, it has no network. */
  network?: string[]
  /** Folders of this machine that it may read, besides `cwd`. */
  folders?: string[]
  memoryMb?: number
  cpus?: number
}

export interface EntryBase {
  name: string
  /** Its line in the file. */
  line: number
  enabled: boolean
  description?: string
  keywords: string[]
  examples: string[]
  timeouts: OperationTimeouts
  idleMs: number
  instances: number
  alternatives: string[]
  /** The key is a glob of tool names. */
  approval: Record<string, ApprovalRule>
  /** Globs of tools that only read, according to the owner; a sentence alone may run them. */
  readOnly: string[]
  /** Changes when, and only when, a running child must be replaced. */
  fingerprint: string
}

export interface LocalEntry extends EntryBase {
  kind: 'local'
  command: string
  args: string[]
  /** Contains placeholders, which are filled only when the child is started. */
  env: Record<string, string>
  cwd?: string
  sandbox?: SandboxRequest
}

export interface RemoteEntry extends EntryBase {
  kind: 'remote'
  url: string
  headers: Record<string, string>
  /** Uses the transport of the first protocol revision, for old servers. */
  sse: boolean
}

export type ServerEntry = LocalEntry | RemoteEntry

/** Its variables or headers: the texts that may have placeholders. */
export function valuesOf(entry: ServerEntry): Record<string, string> {
  return entry.kind === 'local' ? entry.env : entry.headers
}

export const DEFAULT_TIMEOUTS: OperationTimeouts = { startMs: 30_000, listMs: 10_000, callMs: 120_000 }
export const DEFAULT_IDLE_MS = 300_000
