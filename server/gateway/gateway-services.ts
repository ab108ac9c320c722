import type { Audit } from '../audit/audit.ts'
import type { Tracing } from '../calls/tracing/tracing.ts'
import type { Grants } from '../catalog/grants.ts'
import type { Connections } from '../connections/connections.ts'
import type { ApprovalPolicy } from '../policy/approval-policy.ts'
import type { Router } from '../routing/port.ts'
import type { Enrichment } from '../tools/enrichment/enrichment.ts'
import type { ToolIndex } from '../tools/tool-index.ts'
import type { Approvals } from './asking/approve-call.ts'
import type { ClientPrompter } from './asking/client-prompter.ts'
import type { ErrorReport } from './error-result.ts'

/** What the four tools stand on. Loaded when the first of them is called: the list of tools needs none of it. */
export interface GatewayServices {
  index: ToolIndex
  connections: Connections
  router: Router
  /** Where a model that helps with routing is configured. */
  enrichment?: Enrichment | undefined
  policy: ApprovalPolicy
  audit: Audit
  /** Where a collector is set. */
  tracing?: Tracing | undefined
  /** A request that ended in a successful, explicitly chosen tool. */
  learn(request: string, server: string, tool: string): void
  /** Forgets every such request, in the store too. */
  forgetUsage?: (() => Promise<void>) | undefined
  approvals?: Approvals | undefined
  /** Why mcp.json as it stands now is not what is used; undefined: it is. */
  registryProblem?: (() => string | undefined) | undefined
  /** Which entries may have their secrets. */
  grants?: Grants | undefined
  /** A text by a model that the user has configured. */
  writeText?: ClientPrompter['write'] | undefined
}

export interface GatewayOptions extends ErrorReport {
  version: string
  core(): Promise<GatewayServices>
}
