/**
 * The one way from a chosen tool to a child's answer, whichever face or mode chose it: policy, a human's yes where one is wanted,
 * the call with its failover, the record of it. Invariant: nothing reaches a child past this function.
 */
import type { ProgressCallback } from '@modelcontextprotocol/client'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { AppError } from '../lib/errors.ts'
import type { Caller } from '../tools/caller.ts'
import { isCareful } from '../tools/tool-effects.ts'
import { type Called, callWithFailover } from './call-with-failover.ts'
import type { GatewayCore } from './gateway-options.ts'

export interface CallContext {
  caller: Caller
  signal: AbortSignal
  onProgress?: ProgressCallback | undefined
  /** What goes on to the child in `_meta`: trace context. */
  meta?: Record<string, unknown> | undefined
}

export interface ToolWish {
  server: string
  tool: StoredTool
  args: Record<string, unknown>
}

export async function runTool(core: GatewayCore, wish: ToolWish, context: CallContext): Promise<Called> {
  const { server, tool, args } = wish
  allow(core, server, tool.name)
  return callWithFailover(core, server, { tool: tool.name, args, careful: isCareful(tool), ...context })
}

/** Refuses early what will never be allowed, before anyone is asked for parameters. */
export function refuseDenied(core: GatewayCore, server: string, tool: string): void {
  if (core.policy(server, tool) !== 'deny') return
  throw new AppError('forbidden', 'denied_by_policy', `The policy in mcp.json does not allow ${server}/${tool}.`)
}

function allow(core: GatewayCore, server: string, tool: string): void {
  refuseDenied(core, server, tool)
  if (core.policy(server, tool) === 'allow') return
  const message = `${server}/${tool} needs a human's yes, and there is no way to ask for it here.`
  throw new AppError('forbidden', 'approval_unavailable', message)
}
