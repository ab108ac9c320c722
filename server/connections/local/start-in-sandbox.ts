import type { LocalEntry, SandboxRequest } from '../../catalog/server-entry.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import type { ChildContainers } from '../../sandbox/child-port.ts'
import type { Child } from './child.ts'

export interface StartInSandboxOptions {
  containers: () => Promise<ChildContainers>
  sandbox: SandboxRequest
  /** With placeholders filled in. */
  env: Record<string, string>
  onDenied(target: string, reason: string): void
  signal: AbortSignal
}

/** Starts the server in its sandbox, or not at all. */
export async function startInSandbox(entry: LocalEntry, options: StartInSandboxOptions): Promise<Child> {
  const { name: server, command, args, cwd } = entry
  const { containers, sandbox, env, onDenied, signal } = options
  const { folders = [], network: hosts = [], image, memoryMb, cpus } = sandbox
  const request = { server, command, args, cwd, env, folders, hosts, image, memoryMb, cpus, onDenied }
  try {
    return { ...(await (await containers()).start(request, signal)), pid: 0 }
  } catch (error) {
    if (!isAppError(error) || error.details.permanent === true) throw error
    const message = `The server "${server}" can't get its sandbox: ${error.message}`
    throw new AppError(error.kind, error.code, message, { cause: error, details: { ...error.details, sandbox: true } })
  }
}
