/**
 * The port for running one MCP server of the registry in its own container. It is separate from the port for session sandboxes
 * because such a container has no workspace, epoch or checkpoint. Invariant: a container never outlives the process that started
 * it.
 */
import type { Readable, Writable } from 'node:stream'

export interface ChildContainerRequest {
  /** The server's name in mcp.json, for labels and messages. */
  server: string
  command: string
  args: string[]
  /** May contain secrets; only the command sees them. */
  env: Record<string, string>
  cwd?: string | undefined
  /** Folders on the engine's machine that the server may read, each mounted at its own path. */
  folders: string[]
  /** The hosts that the server may reach (`host-pattern.ts`). An empty list means no network at all. */
  hosts: string[]
  onDenied(target: string, reason: string): void
  /** Defaults to the sandbox image. */
  image?: string | undefined
  memoryMb?: number | undefined
  cpus?: number | undefined
}

export interface ChildContainer {
  readonly id: string
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves when the command has ended, with the reason. */
  readonly exited: Promise<string>
  /** Closes the command's input, waits up to `graceMs`, then removes the container and everything in it. */
  stop(graceMs?: number): Promise<void>
}

export interface ChildContainers {
  /** Throws an AppError that says what to do. Leaves nothing behind when it fails. */
  start(request: ChildContainerRequest, signal: AbortSignal): Promise<ChildContainer>
  /** Stops all containers; no new ones can be started after this. */
  stopAll(): Promise<void>
}
