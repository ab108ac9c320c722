/**
 * A place to run one MCP server of the registry: its command in a container of its own. Apart from the port of the sessions'
 * sandboxes, because it has neither workspace, epoch nor checkpoint. Invariant: a container lives no longer than who started it.
 */
import type { Readable, Writable } from 'node:stream'

export interface ChildContainerRequest {
  /** Its name in mcp.json: for labels and messages. */
  server: string
  command: string
  args: string[]
  /** May hold secrets: seen by the command alone. */
  env: Record<string, string>
  cwd?: string | undefined
  /** Folders of the engine's machine that it may read, each at its own path. */
  folders: string[]
  /** The hosts that it may reach (`host-pattern.ts`); with none it has no network at all. */
  hosts: string[]
  onDenied(target: string, reason: string): void
  /** undefined: the sandbox image. */
  image?: string | undefined
  memoryMb?: number | undefined
  cpus?: number | undefined
}

export interface ChildContainer {
  readonly id: string
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves with why, once the command has ended. */
  readonly exited: Promise<string>
  /** Ends its input, gives it a moment to leave, then removes the container with all that runs in it. */
  stop(graceMs?: number): Promise<void>
}

export interface ChildContainers {
  /** Throws AppError with what to do. Leaves nothing behind when it fails. */
  start(wish: ChildContainerRequest, signal: AbortSignal): Promise<ChildContainer>
  /** Stops all of them; none is started any more. */
  stopAll(): Promise<void>
}
