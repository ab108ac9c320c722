import type { ExpectedTarget, OutputChunk } from '../../workspace-server/protocol.ts'
import type { ToolResult } from '../sandbox/port.ts'
import type { CallTalk } from './call-talk.ts'
import type { Caller } from './caller.ts'
import type { ToolDefinitionInput } from './offered-tool.ts'

export interface ToolCallInput {
  callId: string
  caller: Caller
  name: string
  args: Record<string, unknown>
  signal: AbortSignal
  onOutput?: ((chunk: OutputChunk) => void) | undefined
  /** For MCP servers: shows what they say during the call, and asks what they ask. */
  talk?: CallTalk | undefined
  /** The target that its path must have, if it was approved for a certain file. Only the sandbox can check it. */
  expected?: ExpectedTarget | undefined
  /** Called if a server's call fails. Returns the error to go on with. */
  onFailure?: ((error: unknown) => Promise<unknown>) | undefined
  /** Gets the result before anything is recorded about it, and returns the content to record. */
  settle?: ((result: ToolResult) => Promise<unknown[]>) | undefined
  /** How many times approval was requested, including this time. */
  times?: number | undefined
}

interface ListInput {
  caller: Caller
  signal: AbortSignal
  /** Lists the tools of the running server and starts it if necessary; stored tools may come from another version of it. */
  live?: true | undefined
}

/** A source of tools for the chat's model: the session's own sandbox, or a server of the registry. */
export interface ToolSource {
  readonly server: string
  /** Its name for people, if it is not the name of a server. */
  readonly title?: string
  /** The servers that may run its calls if it can't. */
  readonly alternatives?: readonly string[] | undefined
  list(asking: ListInput): Promise<ToolDefinitionInput[]>
  call(input: ToolCallInput): Promise<ToolResult>
}
