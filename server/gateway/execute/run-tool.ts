/**
 * Runs a chosen tool, whichever face or mode chose it: policy, approval if needed, the call with failover, the audit log.
 * Invariant: no tool is called for an outside client except through this function. (The chat asks and records in
 * `sessions/toolbox.ts`; requests that are not tool calls, such as reading a resource, go through `run-request.ts`.)
 */

import { CallProgress, callReturned } from '../../audit/call-end.ts'
import { traced } from '../../calls/tracing/tracing.ts'
import { AppError } from '../../lib/errors.ts'
import { globMatcher } from '../../policy/approval-policy.ts'
import { mustNotBeRepeated } from '../../policy/tool-effects.ts'
import { approveCall } from '../asking/approve-call.ts'
import type { ApprovedBy } from '../asking/approved-rounds.ts'
import type { CallContext, ToolRequest } from '../asking/tool-request.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { type Called, callWithFailover } from './call-with-failover.ts'
import { endOf } from './record-route.ts'

export interface ToolRun extends Called {
  approvedBy?: ApprovedBy
  /** The tool's definition is not the accepted one. */
  definitionChanged?: true
}

export async function runTool(core: GatewayServices, request: ToolRequest, context: CallContext): Promise<ToolRun> {
  const { server, tool, args } = request
  const { tracing } = core
  const end = await core.audit.beginTogether({ caller: context.caller, server, tool: tool.name, args })
  const progress = new CallProgress()
  try {
    refuseDenied(core, server, tool.name)
    const about = { parent: context.meta, attributes: { server, tool: tool.name } }
    const asking = { ...context, onAsking: end.waits }
    const approvedBy = await traced(tracing, 'approval', about, () => approveCall(core, request, asking))
    end.runs()
    // A person takes their time, and the rules may have changed meanwhile.
    if (approvedBy) refuseDenied(core, server, tool.name)
    await context.beforeSending?.()
    progress.sending()
    const { prompter: _, asker: __, beforeSending: ___, ...rest } = context
    // A changed tool may say that it can be repeated, and nobody has accepted that.
    const isChanged = core.approvals?.definitions.isChanged(server, tool.name) === true
    const mustNotRepeat = mustNotBeRepeated(tool) || isChanged
    const input = { tool: tool.name, args, mustNotRepeat, ...rest }
    const called = await traced(tracing, 'server call', about, () =>
      callWithFailover(core, server, tracing ? { ...input, meta: tracing.carry(context.meta) } : input, {
        mustRead: (request.found !== undefined || request.mustRead === true) && request.requiresApproval !== true,
        here: approvedBy !== undefined,
        isRuled: request.isRuled
      })
    )
    const { calledMs } = progress
    const changed = await changeFlag(core, request, called.server)
    end({ ...callReturned(called.result), server: called.server, attempts: called.attempts, calledMs, ...changed })
    const { result } = called
    if (approvedBy && called.server === server && result.resultType === 'input_required') {
      const next = { ...request, owner: context.caller.owner, state: result.requestState }
      core.approvals?.rounds.keep(next, approvedBy)
    }
    return { ...called, ...(approvedBy ? { approvedBy } : {}), ...changed }
  } catch (error) {
    end({ ...endOf(error, progress.stage), calledMs: progress.calledMs })
    throw error
  }
}

/** Checks the definition that the server had for this call. The call was already made, so this must not fail it. */
async function changeFlag(
  { approvals, index }: GatewayServices,
  { tool, latest }: ToolRequest,
  server: string
): Promise<{ definitionChanged?: true }> {
  const { definitions } = approvals ?? {}
  const now = latest?.(server) ?? index.tool(server, tool.name)
  if (definitions === undefined || now === undefined) return {}
  const isChanged = await definitions.change(server, now).then(
    (change) => change !== undefined,
    () => definitions.isChanged(server, tool.name)
  )
  return isChanged ? { definitionChanged: true } : {}
}

/** Refuses a call that will never be allowed, before anyone is asked for parameters. */
export function refuseDenied(core: GatewayServices, server: string, tool: string): void {
  if (core.policy(server, tool) !== 'deny') return
  const denying = Object.entries(core.index.entry(server)?.approval ?? {})
    .filter(([glob, rule]) => rule === 'deny' && globMatcher(glob)(tool))
    .map(([glob]) => glob)
    .toSorted((a, b) => b.length - a.length)
  const rule = denying[0] === undefined ? '' : `: its "approval" has ${JSON.stringify(denying[0])}: "deny"`
  throw new AppError('forbidden', 'denied_by_policy', `The policy in mcp.json does not allow ${server}/${tool}${rule}.`)
}
