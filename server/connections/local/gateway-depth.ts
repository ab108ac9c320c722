import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { AppError } from '../../lib/errors.ts'

/** How many gateways are above a process: every child is told, so that one that is its own server comes to an end. */
export const DEPTH = 'MCP_ORCHESTRATOR_DEPTH'

type Environment = Record<string, string | undefined>

/** What a child of ours is told. */
export function depthBelow(environment: Environment): string {
  return String(depthOf(environment) + 1)
}

/** A gateway behind another is fine; behind two there is hardly anything but the same one over and over. */
export function refuseNesting(environment: Environment, registryFile: string): void {
  const depth = depthOf(environment)
  if (depth > 0 && isCovered(resolve(registryFile))) {
    const message =
      'This gateway was started by a gateway with the same mcp.json: take the gateway itself out of its mcp.json.'
    throw new AppError('unavailable', 'gateway_nested', message)
  }
  if (depth < 2) return
  const message = 'This gateway was started by a gateway behind a gateway: take the gateway itself out of its mcp.json.'
  throw new AppError('unavailable', 'gateway_nested', message)
}

/** Servers find the registry of their own gateway covered: as an empty device, or in a folder that is empty and read-only. */
function isCovered(file: string): boolean {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found) return found.isCharacterDevice()
  try {
    accessSync(dirname(file), constants.W_OK)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EROFS'
  }
}

function depthOf(environment: Environment): number {
  const depth = Number(environment[DEPTH] ?? 0)
  return Number.isSafeInteger(depth) && depth > 0 ? depth : 0
}
