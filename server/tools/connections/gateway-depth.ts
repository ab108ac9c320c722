import { AppError } from '../../lib/errors.ts'

/** How many gateways are above a process: every child is told, so that one that is its own server comes to an end. */
export const DEPTH = 'MCP_ORCHESTRATOR_DEPTH'

type Environment = Record<string, string | undefined>

/** What a child of ours is told. */
export function depthBelow(environment: Environment): string {
  return String(depthOf(environment) + 1)
}

/** A gateway behind another is fine; behind two there is hardly anything but the same one over and over. */
export function refuseNesting(environment: Environment): void {
  if (depthOf(environment) < 2) return
  const message = 'This gateway was started by a gateway behind a gateway: take the gateway itself out of its mcp.json.'
  throw new AppError('unavailable', 'gateway_nested', message)
}

function depthOf(environment: Environment): number {
  const depth = Number(environment[DEPTH] ?? 0)
  return Number.isSafeInteger(depth) && depth > 0 ? depth : 0
}
