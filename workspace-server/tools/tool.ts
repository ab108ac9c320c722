import type { JSONObject } from '@modelcontextprotocol/server'
import type { ExpectedTarget } from '../protocol.ts'

/** The parts of a tool. A tool throws ToolError for everything that the model can do something about. */

/** A sentence for the model; becomes an `isError` result. */
export class ToolError extends Error {}

type ToolContent =
  | { type: 'text'; text: string }
  | { type: 'image'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; blob: string } }

export interface ToolReply {
  content: ToolContent[]
  structuredContent: Record<string, unknown>
}

export interface ToolContext {
  signal: AbortSignal
  /** Undefined if the caller requested no progress. Resolves when the message is on its way. */
  progress?: ((message: string) => Promise<void>) | undefined
  /** The target that a person was shown for this call's path. */
  expected?: ExpectedTarget | undefined
}

/** The part of JSON Schema that the tools use. */
interface ObjectSchema {
  [key: string]: unknown
  type: 'object'
  properties: Record<string, JSONObject>
  required?: string[]
  additionalProperties: false
}

/** `required` names the properties that must be there; no others are allowed. */
export function objectSchema(properties: ObjectSchema['properties'], ...required: string[]): ObjectSchema {
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}), additionalProperties: false }
}

export const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

export interface Tool {
  name: string
  title: string
  description: string
  inputSchema: ObjectSchema
  outputSchema: ObjectSchema
  annotations: typeof READS
  run(args: Record<string, unknown>, context: ToolContext): Promise<ToolReply>
}
