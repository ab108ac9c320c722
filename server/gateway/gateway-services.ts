import type { Audit } from '../audit/audit.ts'
import type { Tracing } from '../calls/tracing/tracing.ts'
import type { Grants } from '../catalog/grants.ts'
import type { CodeRuns } from '../code/code-runs.ts'
import type { Connections } from '../connections/connections.ts'
import type { ApprovalPolicy } from '../policy/approval-policy.ts'
import type { Router } from '../routing/port.ts'
import type { Enrichment } from '../tools/enrichment/enrichment.ts'
import type { ToolIndex } from '../tools/tool-index.ts'
import type { Approvals } from './asking/approve-call.ts'
import type { ClientPrompter } from './asking/client-prompter.ts'
import type { CallContext } from './asking/tool-request.ts'
import type { ErrorReport } from './error-result.ts'

interface CodeServices {
  runs: CodeRuns
  /** Whether a rule in mcp.json allows the tool. Without a rule, `policy` allows direct calls, but a program's write asks. */
  isAllowedByRule(server: string, tool: string): boolean
}

/** The services behind the four tools. Loaded when a tool is called for the first time: listing the tools needs none of them. */
export interface GatewayServices {
  index: ToolIndex
  connections: Connections
  router: Router
  /** Set if a model that helps with routing is configured. */
  enrichment?: Enrichment | undefined
  policy: ApprovalPolicy
  audit: Audit
  /** Set if a collector is configured. */
  tracing?: Tracing | undefined
  /** Learns a request of this owner that ended in a successful tool that a client or a person chose. */
  learn(request: string, server: string, tool: string, owner: string, session?: string): void
  /** Forgets all learnt requests, in the store too. */
  forgetUsage?: (() => Promise<void>) | undefined
  /** Forgets what was learnt in a chat session, in the store too. */
  forgetSession?: ((session: string) => Promise<void>) | undefined
  approvals?: Approvals | undefined
  /** Set if programs may be run (`GATEWAY_CODE`). */
  code?: CodeServices | undefined
  /** Why the current mcp.json is not in use; undefined if it is. */
  registryProblem?: (() => string | undefined) | undefined
  /** Why the entry of a server is left out; undefined if it is not, or if callers may not know. */
  leftOut?: ((server: string) => string | undefined) | undefined
  /** Decides which entries may have their secrets. */
  grants?: Grants | undefined
  /** Text generation by the model that the user has configured. */
  writeText?: ClientPrompter['write'] | undefined
}

export type TaskAction = 'get' | 'update' | 'cancel'

/** A tool beside the four, with its own code. */
export interface ExtraTool {
  definition: GatewayTool
  /** Answers a request about a task of this tool. Throws `not-found` for another one. */
  task(
    core: GatewayServices,
    action: TaskAction,
    taskId: string,
    context: CallContext
  ): Promise<Record<string, unknown>>
  call(core: GatewayServices, args: Record<string, unknown>, context: CallContext): Promise<Record<string, unknown>>
}

export interface GatewayTool {
  name: string
  title: string
  description: string
  inputSchema: {
    type: 'object'
    properties: Record<string, Record<string, string | number | boolean | string[]>>
    required?: string[]
    additionalProperties: false
  }
  annotations: Record<string, boolean>
}

export interface GatewayOptions extends ErrorReport {
  version: string
  core(): Promise<GatewayServices>
  extraTools?: ExtraTool[]
}
