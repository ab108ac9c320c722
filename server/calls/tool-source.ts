import type { OutputChunk } from '../../workspace-server/protocol.ts'
import type { ToolResult } from '../sandbox/port.ts'
import type { Caller } from './caller.ts'
import type { ToolDefinitionInput } from './offered-tool.ts'

export interface ToolCallInput {
  callId: string
  caller: Caller
  name: string
  args: Record<string, unknown>
  signal: AbortSignal
  onOutput?: ((chunk: OutputChunk) => void) | undefined
}

export interface ListInput {
  caller: Caller
  signal: AbortSignal
  /** Lists the tools of the running server and starts it if necessary; stored tools may come from another version of it. */
  live?: true | undefined
}

/** A server whose tools are offered to the chat's model, in addition to those of the session's sandbox. */
export interface ToolSource {
  readonly server: string
  list(asking: ListInput): Promise<ToolDefinitionInput[]>
  call(input: ToolCallInput): Promise<ToolResult>
}
