/** The servers of the registry, as the page shows and changes them. Values of variables and headers never cross this line back. */
import { z } from 'zod'
import type { ApprovalRule } from './approval-rule.ts'

const MAX_PASTE = 400_000

/** A client's `mcpServers` as an object, or the text that a person pasted. Without `confirm` nothing is written. */
export const addServersSchema = z
  .object({
    mcpServers: z.record(z.string(), z.unknown()).optional(),
    text: z.string().max(MAX_PASTE).optional(),
    /** Puts what looks like a secret into the credentials file, and a placeholder into the registry. */
    moveSecrets: z.boolean().optional(),
    /** From the reply to the same request without it: what was shown is what is added. */
    confirm: z.string().max(200).optional()
  })
  .refine(({ mcpServers, text }) => (mcpServers === undefined) !== (text === undefined), {
    message: 'give either "mcpServers" or "text"'
  })

export type AddServers = z.input<typeof addServersSchema>

/** Whether whoever asked may change servers: now, with the admin token, or only on the command line. */
export type ServersAdmin = 'allowed' | 'token_needed' | 'cli_only'

/** A variable or header: its value only where it is nothing but a placeholder. */
export interface ShownValue {
  name: string
  placeholder: string | null
  looksSecret: boolean
}

/** What will be run or reached, word for word. */
export interface ServerTarget {
  name: string
  kind: 'local' | 'remote'
  /** The exact command line or address; null where only an administrator may see it. */
  target: string | null
  cwd: string | null
  env: ShownValue[]
  headers: ShownValue[]
  /** `folders` it may read beside `cwd`; `network` is `none` or the hosts that it may reach. */
  sandbox: { image: string | null; network: string; folders: string[] } | null
  approval: Record<string, ApprovalRule>
  enabled: boolean
  description: string | null
}

export interface PlannedServer extends ServerTarget {
  target: string
  warnings: string[]
}

export interface ServerProblem {
  server: string | null
  line: number
  reason: string
  /** False: the server works, but something in its entry means nothing to us. */
  fatal: boolean
}

export interface PlanReply {
  /** Null when there is nothing to add. */
  confirm: string | null
  servers: PlannedServer[]
  problems: ServerProblem[]
  /** There is a credentials file that secrets can be moved to. */
  canMoveSecrets: boolean
}

export interface AddedReply {
  added: string[]
}

export interface ShownTool {
  name: string
  /** What the policy says when the chat's model asks for it. */
  verdict: ApprovalRule
  /** What the policy says when an outside MCP client asks for it. */
  outside: ApprovalRule
  /** Its definition is not the one that was accepted: the next call shows the difference and asks. */
  changed: boolean
}

export type ServerHealth = 'ok' | 'failing' | 'unseen' | 'off'

export interface ServerSummary {
  name: string
  kind: 'local' | 'remote'
  /** Null where only an administrator may see it. */
  target: string | null
  enabled: boolean
  health: ServerHealth
  /** It is new or changed in the file and uses secrets: it gets them when a person has accepted it. */
  isWaiting: boolean
  state: 'stopped' | 'starting' | 'running'
  tools: ShownTool[]
  /** When its tools were last listed. */
  seenAt: number | null
  /** How long its last start took. */
  startMs: number | null
  /** Since when it runs. */
  startedAt: number | null
  lastError: { at: number; message: string } | null
  /** Made since this program was started. */
  calls: number
  processes: number
}

export interface ServerDetail extends Omit<ServerSummary, 'tools'>, ServerTarget {
  tools: (ShownTool & { description: string })[]
  /** Null where only an administrator may see it. */
  log: string | null
  /** Of what is shown: it is this that is accepted. */
  hash: string | null
}

export interface ServersReply {
  admin: ServersAdmin
  /** Null where only an administrator may see it. */
  file: string | null
  /** Why the file as it stands can't be used; the servers are those of before. */
  problem: string | null
  servers: ServerSummary[]
  problems: ServerProblem[]
  /** Null: servers can't reach our files or each other. Else what they can reach, in a sentence. */
  exposure: string | null
}

export interface TestReply {
  ok: boolean
  ms: number
  tools: number
  reason: string | null
}
