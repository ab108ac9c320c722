import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { AppError, hasCode } from '../../lib/errors.ts'

/** Number of gateways above a process. Every child gets it, so that a gateway that is its own server ends the recursion. */
export const DEPTH = 'MCP_ORCHESTRATOR_DEPTH'

type Environment = Record<string, string | undefined>

/** The value for our children. */
export function depthBelow(environment: Environment): string {
  return String(depthOf(environment) + 1)
}

/** A gateway behind another is fine; behind two it is almost certainly the same one over and over. */
export function refuseNesting(environment: Environment, registryFile: string): void {
  const depth = depthOf(environment)
  if (depth > 0 && isCovered(resolve(registryFile))) {
    const message =
      'This gateway was started by a gateway with the same mcp.json. Remove the gateway from its own mcp.json.'
    throw new AppError('unavailable', 'gateway_nested', message)
  }
  if (depth < 2) return
  const message = 'This gateway was started by a gateway behind a gateway. Remove the gateway from its own mcp.json.'
  throw new AppError('unavailable', 'gateway_nested', message)
}

/** For a child, the registry of its own gateway is covered: by an empty device, or in an empty read-only folder. */
function isCovered(file: string): boolean {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found) return found.isCharacterDevice()
  try {
    accessSync(dirname(file), constants.W_OK)
    return false
  } catch (error) {
    return hasCode(error, 'EROFS')
  }
}

function depthOf(environment: Environment): number {
  const depth = Number(environment[DEPTH] ?? 0)
  return Number.isSafeInteger(depth) && depth > 0 ? depth : 0
}
