import type { ServerEntry } from '../catalog/server-entry.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { globMatcher } from './approval-policy.ts'
import { isPlainReader } from './plain-reader.ts'

const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']

/** By its annotations. A tool that says that it reads and that it destroys says nothing. */
function isReadOnly({ annotations }: StoredTool): boolean {
  return annotations?.readOnlyHint === true && annotations.destructiveHint !== true
}

/** It may have effects, and repeating it is not known to be harmless. */
export function mustNotBeRepeated(tool: StoredTool): boolean {
  return !isReadOnly(tool) && tool.annotations?.idempotentHint !== true
}

/**
 * Whether a tool only reads, so that a sentence may run it unasked: by its annotations; by the entry's `readOnly`; or, where the
 * server annotates none of its tools, plainly by its words. Invariant: `approval` has no say in this.
 */
export function isReader(entry: ServerEntry | undefined, tools: StoredTool[], tool: StoredTool): boolean {
  if (isReadOnly(tool) || isListedReader(entry?.readOnly ?? [], tool)) return true
  return !tools.some(isAnnotated) && isPlainReader(tool)
}

/** A pattern is no word on a tool that itself says that it destroys; its full name is. */
function isListedReader(globs: string[], { name, annotations }: StoredTool): boolean {
  const isDestructive = annotations?.destructiveHint === true
  return globs.some((glob) => glob === name || (!isDestructive && globMatcher(glob)(name)))
}

function isAnnotated({ annotations = {} }: StoredTool): boolean {
  return HINTS.some((hint) => annotations[hint] !== undefined)
}
