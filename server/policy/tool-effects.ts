import type { ServerEntry } from '../catalog/server-entry.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { globMatcher } from './approval-policy.ts'
import type { ChangedTools } from './changed-tools.ts'
import { isPlainReader } from './plain-reader.ts'

interface Claims {
  annotations?: Record<string, unknown> | undefined
}

const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']

/** Decides by the annotations. A tool that claims to be both read-only and destructive is not trusted. */
export function isReadOnly({ annotations }: Claims): boolean {
  return annotations?.readOnlyHint === true && annotations.destructiveHint !== true
}

/** The tool may have effects and is not known to be safe to repeat. */
export function mustNotBeRepeated(tool: Claims): boolean {
  return !isReadOnly(tool) && tool.annotations?.idempotentHint !== true
}

/**
 * Decides whether a tool only reads, so that a sentence may run it without confirmation: by its annotations; by the entry's
 * `readOnly`; or, if the server annotates none of its tools, by their wording. Invariant: approval rules don't count here.
 */
export function isReader(entry: ServerEntry | undefined, tools: StoredTool[], tool: StoredTool): boolean {
  if (isReadOnly(tool) || isListedReader(entry?.readOnly ?? [], tool)) return true
  return !tools.some(isAnnotated) && isPlainReader(tool)
}

/**
 * Like `isReader`, for a tool whose definition may have changed: it must only read by the accepted definitions too. Without this,
 * a server could turn its own tool into a reader.
 */
export async function isAcceptedReader(
  definitions: Pick<ChangedTools, 'accepted'> | undefined,
  server: string,
  entry: ServerEntry | undefined,
  tools: StoredTool[],
  tool: StoredTool
): Promise<boolean> {
  if (!isReader(entry, tools, tool)) return false
  if (definitions === undefined) return true
  const accepted = await definitions.accepted(server, tools)
  const before = accepted.find(({ name }) => name === tool.name)
  return before !== undefined && isReader(entry, accepted, before)
}

/** A pattern does not override a tool's own claim to be destructive; its full name does. */
export function isListedReader(globs: readonly string[], { name, annotations }: Claims & { name: string }): boolean {
  const isDestructive = annotations?.destructiveHint === true
  return globs.some((glob) => glob === name || (!isDestructive && globMatcher(glob)(name)))
}

function isAnnotated({ annotations = {} }: StoredTool): boolean {
  return HINTS.some((hint) => annotations[hint] !== undefined)
}
