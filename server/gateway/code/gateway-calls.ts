/**
 * Makes the calls of a client's program. Invariant: each goes through `runTool`, like a direct call of the same client: policy,
 * approval, audit, limits, secrets, failover. The only difference is stricter: a tool that no rule allows and that may write asks.
 */
import type { Caller } from '../../calls/caller.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import { namedLike, outcomeOf } from '../../code/call-outcome.ts'
import {
  ApprovalPending,
  type CallHooks,
  type CallOutcome,
  type ProgramCall,
  type ProgramCalls,
  searchLimit,
  unsureWarning
} from '../../code/program-call.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import { typeSignature } from '../../tools/type-signature.ts'
import type { CallContext } from '../asking/tool-request.ts'
import { reads } from '../execute/confirm-route.ts'
import type { Discovery } from '../execute/discovery.ts'
import { namedRoute, noServer } from '../execute/execute.ts'
import { routeRequest } from '../execute/route-request.ts'
import { runTool } from '../execute/run-tool.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { checkParams } from '../params/check-params.ts'

const DESCRIPTION_CHARS = 200

export function gatewayCalls(
  core: GatewayServices,
  discovery: Discovery,
  asker: { caller: Caller; meta?: CallContext['meta'] }
): ProgramCalls {
  return {
    async run(call, hooks) {
      const { caller } = asker
      const context: CallContext = { caller, signal: hooks.signal, ...(asker.meta ? { meta: asker.meta } : {}) }
      if (call.kind === 'search') return { ok: true, value: await search(core, discovery, call.args, context) }
      const server = serverNamed(core, call.server)
      const tool = await toolNamed(core, server, call.tool, context)
      if (call.kind === 'describe') return { ok: true, value: typeSignature(server, tool) }
      return makeCall(core, { server, tool, call }, hooks, context)
    }
  }
}

async function makeCall(
  core: GatewayServices,
  { server, tool, call }: { server: string; tool: StoredTool; call: ProgramCall },
  hooks: CallHooks,
  context: CallContext
): Promise<CallOutcome> {
  const problems = checkParams(tool.inputSchema, call.args)
  if (problems.length > 0) {
    const message = `${server}.${tool.name}: ${problems.map(({ path, reason }) => `${path} ${reason}`).join('; ')}`
    return { ok: false, code: 'invalid_params', message }
  }
  const isRead = await reads(core, server, tool)
  // Nobody knows whether the interrupted call took effect, so only a person may repeat it, also where the server says that it may be.
  const isUnsure = hooks.interruptions > 0 && !isRead
  const isAllowed = (at: string) => core.code?.isAllowedByRule(at, tool.name) === true
  const isRuled = isAllowed(server)
  const running = runTool(
    core,
    {
      ...{ server, tool, args: call.args },
      requiresApproval: isUnsure || !(isRuled || isRead),
      mustRead: !isRuled && isRead,
      isRuled: isAllowed,
      ...(isUnsure ? { warning: unsureWarning(hooks.interruptions) } : {})
    },
    {
      ...context,
      // A call that only reads needs no record before it is sent.
      ...(isRead ? {} : { beforeSending: hooks.beforeSending }),
      asker: async (card) => {
        const decision = hooks.decided(card.hash)
        if (decision === undefined) throw new ApprovalPending(card)
        return { approved: decision.approved, ...(decision.reason === undefined ? {} : { reason: decision.reason }) }
      }
    }
  )
  return running.then(
    ({ result }) => outcomeOf(result),
    (error: unknown) => {
      if (!isUnsure || !isAppError(error, 'approval_denied')) throw error
      const message = `${server}.${tool.name} was under way when the server stopped, and was not repeated. Whether it took effect is unknown.`
      return { ok: false as const, code: 'outcome_unknown', message }
    }
  )
}

function serverNamed(core: GatewayServices, name: string): string {
  const entry = namedLike(core.index.entries(), name)
  if (entry) return entry.name
  throw noServer(core, name)
}

async function toolNamed(
  core: GatewayServices,
  server: string,
  name: string,
  context: CallContext
): Promise<StoredTool> {
  const tools = core.index.tools(server) ?? (await core.connections.list(server, context))
  return namedLike(tools, name) ?? (await namedRoute(core, server, name, context)).tool
}

async function search(
  core: GatewayServices,
  discovery: Discovery,
  { query, limit }: Record<string, unknown>,
  context: CallContext
) {
  if (typeof query !== 'string') throw new AppError('invalid', 'invalid_request', 'search needs a query.')
  await discovery.discover(core, context)
  const options = { limit: searchLimit(limit), owner: context.caller.owner }
  const { matches } = await routeRequest(core, query.slice(0, 4000), options, context.signal)
  return matches.map(({ server, tool, confidence, description }) => ({
    ...{ server, tool, confidence: Math.round(confidence * 1000) / 1000 },
    description: description.slice(0, DESCRIPTION_CHARS)
  }))
}
