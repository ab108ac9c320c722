import { FILES_CHANGED, type FileChange, filesChangedText } from '../../../contract/file-changes.ts'
import type { FileChangeResult, PathTarget, FileChange as SandboxChange } from '../../../workspace-server/protocol.ts'
import type { ToolDefinition, ToolResult } from '../../sandbox/port.ts'
import type { StoredChangeSet } from '../../storage/checkpoint-store.ts'
import type { LiveSession } from './live-session.ts'
import { type AppliedChanges, madeByPerson } from './workspace-files.ts'

const QUIET_CALL_MS = 30_000

/** The operations that a job may use in a session's sandbox. */
export interface Workspace {
  readonly containerId: string
  readonly epoch: number
  listTools(): Promise<ToolDefinition[]>
  /** For calls by the person themselves, which are not part of the conversation. */
  callUnrecorded(name: string, args: Record<string, unknown>): Promise<ToolResult>
  /** Stores what the person has changed, as a version. */
  saveFiles(): Promise<void>
  /** Puts changes whose content is stored into the workspace, as a version; see `WorkspaceFiles.apply`. */
  applyChanges(input: AppliedChanges): Promise<StoredChangeSet | null>
  /** Makes a change that the person asked for. */
  change(change: SandboxChange): Promise<FileChangeResult>
  /** Records in the event log what the person has changed. */
  recordChange(change: FileChange): Promise<void>
  /** Resolves the paths of tool arguments. */
  resolve(paths: string[]): Promise<PathTarget[]>
}

/** Opens the sandbox of a session that the caller has entered. */
export async function openWorkspace(session: LiveSession, signal?: AbortSignal): Promise<Workspace> {
  await session.openSandbox(signal)
  const { connection } = session.sandbox
  return {
    containerId: connection.containerId,
    epoch: session.epoch,
    listTools: () => connection.listTools(),
    callUnrecorded: (name, args) => session.sandbox.connection.callTool(name, args, { timeoutMs: QUIET_CALL_MS }),
    saveFiles: async () => void (await session.sandbox.checkpoint({ version: madeByPerson() })),
    applyChanges: (input) => session.sandbox.applyChanges(input),
    change: (change) => session.sandbox.connection.change(change),
    recordChange(change) {
      const data = { code: FILES_CHANGED, message: filesChangedText([change]), files: [change] }
      return session.events.append([{ type: 'session:notice', data }], session.epoch)
    },
    resolve: (paths) => session.sandbox.connection.resolve(paths)
  }
}
