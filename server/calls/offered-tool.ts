import { createHash } from 'node:crypto'
import type { ToolClaims } from '../../contract/events.ts'
import { isOwnSource } from '../../contract/own-sources.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { headOf } from '../lib/cut-text.ts'

/** A tool as it is offered to the model and shown to the user. */
export interface OfferedTool {
  /** The server's name in the registry; never what the server calls itself. */
  server: string
  name: string
  /** Unique among the offered tools, and valid for every model provider. */
  modelName: string
  description: string
  inputSchema: Record<string, unknown>
  annotations?: Record<string, unknown> | undefined
  /** Hash of name, description and schema, and of its server's entry. */
  definition: string
  /** The whole definition, as the server sent it. */
  whole: ToolDefinitionInput
}

export interface ToolDefinitionInput {
  name: string
  description?: string | undefined
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown> | undefined
  annotations?: Record<string, unknown> | undefined
  /** Other fields for the gateway's clients: title, icons, `_meta`. */
  shown?: Record<string, unknown> | undefined
  /** Whether the server's entry lists it in `readOnly`. */
  isListedReader?: boolean | undefined
  /** The fingerprint of the server's entry. Another command or address is another server, whatever it calls itself. */
  entry?: string | undefined
}

const MAX_NAME = 64
const MAX_DESCRIPTION = 4000
const MAX_CLAIM = 1000
const MAX_SCHEMA = 50_000
const MAX_TOOLS = 500

/** Our own tools keep their names; the names of servers' tools are prefixed with the server's name. */
export function offerTools(server: string, definitions: ToolDefinitionInput[], taken: Set<string>): OfferedTool[] {
  return usable(definitions).map((definition) => {
    const wanted = isOwnSource(server) ? definition.name : `${server}__${definition.name}`
    const modelName = uniqueName(wanted.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME), taken)
    taken.add(modelName)
    return {
      server,
      name: definition.name,
      modelName,
      description: shownDescription(definition),
      inputSchema: definition.inputSchema,
      ...(definition.annotations ? { annotations: definition.annotations } : {}),
      definition: definitionHash(definition),
      whole: definition
    }
  })
}

/** Drops duplicates and definitions that are too large for a model to read or a log to keep. */
function usable(definitions: ToolDefinitionInput[]): ToolDefinitionInput[] {
  const seen = new Set<string>()
  return definitions.slice(0, MAX_TOOLS).filter(({ name, inputSchema }) => {
    if (seen.has(name) || JSON.stringify(inputSchema).length > MAX_SCHEMA) return false
    seen.add(name)
    return true
  })
}

function shownDescription({ description = '' }: ToolDefinitionInput): string {
  return description.slice(0, MAX_DESCRIPTION).toWellFormed()
}

/** For the card of a call. The hints are in no hash: a card shows them as what the server says. */
export function claimsOf({
  description = '',
  annotations = {}
}: Pick<ToolDefinitionInput, 'description' | 'annotations'>): ToolClaims {
  const { readOnlyHint: readOnly, destructiveHint: destructive } = annotations
  return {
    description: headOf(description, MAX_CLAIM).toWellFormed(),
    ...(description.length > MAX_CLAIM && { isCut: true }),
    ...(typeof readOnly === 'boolean' && { readOnly }),
    ...(typeof destructive === 'boolean' && { destructive })
  }
}

function uniqueName(wanted: string, taken: Set<string>): string {
  if (!taken.has(wanted)) return wanted
  for (let number = 2; ; number++) {
    const suffix = `_${number}`
    const name = wanted.slice(0, MAX_NAME - suffix.length) + suffix
    if (!taken.has(name)) return name
  }
}

/** Covers only what the chat shows: neither the model nor the user sees the end of a longer description there. */
export function definitionHash(definition: ToolDefinitionInput): string {
  const { name, inputSchema, entry } = definition
  return sha256(canonicalJson({ name, description: shownDescription(definition), inputSchema, entry }))
}

/** Binds an approval to one session, one call, one definition, these exact arguments, and the target of their path at that time. */
export function approvalHash(parts: {
  sessionId: string
  callId: string
  definition: string
  args: unknown
  target?: unknown
}): string {
  const { sessionId, callId, definition, args, target } = parts
  return sha256(canonicalJson([sessionId, callId, definition, args, ...(target === undefined ? [] : [target])]))
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
