/** The servers in the registry, as the page shows and changes them. Values that look like secrets are never sent to the page. */
import { z } from 'zod'
import type { ApprovalRule } from './approval-rule.ts'

const MAX_PASTE = 400_000

/** A client's `mcpServers` as an object, or the text that a person pasted. Without `confirm` nothing is written. */
export const addServersSchema = z
  .object({
    mcpServers: z.record(z.string(), z.unknown()).optional(),
    text: z.string().max(MAX_PASTE).optional(),
    /** Move values that look like secrets to the credentials file, and leave placeholders in the registry. */
    moveSecrets: z.boolean().optional(),
    /** The value from the reply to the same request without it. It makes sure that what was shown is what is added. */
    confirm: z.string().max(200).optional()
  })
  .refine(({ mcpServers, text }) => (mcpServers === undefined) !== (text === undefined), {
    message: 'give either "mcpServers" or "text"'
  })

export type AddServers = z.input<typeof addServersSchema>

/** Whether the caller may change servers: now, with the admin token, or only on the command line. */
export type ServersAdmin = 'allowed' | 'token_needed' | 'cli_only'

/** A variable or header. */
export interface ShownValue {
  name: string
  /** The value if it is just a placeholder. */
  placeholder: string | null
  /** Any other value, with a password in an address masked; null if the whole value is masked because it has the form of a secret. */
  value: string | null
  looksSecret: boolean
}

/** Exactly what will be run or connected to. */
export interface ServerTarget {
  name: string
  kind: 'local' | 'remote'
  /** The exact command line or address; null if only an administrator may see it. */
  target: string | null
  cwd: string | null
  env: ShownValue[]
  headers: ShownValue[]
  /** `folders`: what it may read besides `cwd`. `network`: `none`, or the hosts that it may reach. */
  sandbox: { image: string | null; network: string; folders: string[] } | null
  approval: Record<string, ApprovalRule>
  /** The tools that a sentence alone may run, because the entry says that they only read. */
  readOnly: string[]
  /** The servers that get its calls when it fails. */
  alternatives: string[]
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
  /** If false, the server works, but its entry has an unknown key. */
  fatal: boolean
}

export interface PlanReply {
  /** Null if there is nothing to add. */
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
  /** The rule for calls of the model in the chat. */
  verdict: ApprovalRule
  /** The rule for calls of outside MCP clients. */
  outside: ApprovalRule
  /** Its definition differs from the accepted one. The next call shows the difference and asks. */
  changed: boolean
}

export type ServerHealth = 'ok' | 'failing' | 'unseen' | 'off'

export interface ServerSummary {
  name: string
  kind: 'local' | 'remote'
  /** With secrets masked; null if only an administrator may see it. */
  target: string | null
  enabled: boolean
  health: ServerHealth
  /** The entry is new or was changed in the file, and uses secrets. It gets them after a person has accepted it. */
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
  /** Number of tools that can be found by meaning so far; missing without embeddings. */
  embedded?: number
}

export interface ServerDetail extends Omit<ServerSummary, 'tools'>, ServerTarget {
  tools: (ShownTool & { description: string })[]
  /** Null where only an administrator may see it. */
  log: string | null
  /** Hash of the version that is shown. Accepting an entry accepts this version. */
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

/** A tool that an administrator can try in the page. All of it is hostile. */
export interface TriedTool {
  name: string
  description: string
  inputSchema: Record<string, unknown>
  /** Hash of the definition. A trial names it, so that what runs is what was shown. */
  definition: string
  /** It is not known to only read, so it needs a confirmation. */
  mayChange: boolean
}

export const toolTrialSchema = z.object({
  tool: z.string().min(1).max(200),
  args: z.record(z.string(), z.unknown()),
  definition: z.string().max(200),
  isConfirmed: z.boolean().optional()
})
export type ToolTrial = z.infer<typeof toolTrialSchema>

export interface ToolTrialReply {
  isError: boolean
  content: unknown[]
  ms: number
}

export interface TestReply {
  ok: boolean
  ms: number
  tools: number
  reason: string | null
}

/**
 * Splits a command line in one field, such as `npx -y pkg`, into the command and its arguments, with quotes as in a shell. Null if it
 * is one word, a path, or something that only a shell could run.
 */
export function splitCommand(line: string): { command: string; args: string[] } | null {
  const text = line.trim()
  if (!/^[\w.@-]+\s/.test(text) || /[|&;<>$`\\\n]/.test(text)) return null
  const words = text.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? []
  const [command = '', ...args] = words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, (_, a, b) => a ?? b))
  // An open quote would be left over.
  return args.some((arg) => /^["']|["']$/.test(arg)) || (text.match(/["']/g) ?? []).length % 2 !== 0
    ? null
    : { command, args }
}
