import type { Readable, Writable } from 'node:stream'

/** A started MCP server, as its transport needs it: a process here, or a command in a container. */
export interface Child {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** 0: it is no process of this machine that could be looked at. */
  readonly pid: number
  /** Resolves with why, once it has ended. */
  readonly exited: Promise<string>
  /** Ends its input, gives it a moment to leave, then ends it and all that it started. */
  stop(graceMs?: number): Promise<void>
}
