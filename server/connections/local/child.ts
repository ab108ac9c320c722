import type { Readable, Writable } from 'node:stream'

/** A started MCP server as its transport needs it: a process here, or a command in a container. */
export interface Child {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** 0 if it is not a process of this machine. */
  readonly pid: number
  /** Resolves with the reason once it has ended. */
  readonly exited: Promise<string>
  /** Closes its input, gives it a moment to exit, then kills it and everything that it started. */
  stop(graceMs?: number): Promise<void>
}
