import type { StoredTool } from '../catalog/stored-tools.ts'

export function isReadOnly(tool: StoredTool): boolean {
  return tool.annotations?.readOnlyHint === true
}

/** It may have effects, and repeating it is not known to be harmless. */
export function isCareful(tool: StoredTool): boolean {
  return !isReadOnly(tool) && tool.annotations?.idempotentHint !== true
}
