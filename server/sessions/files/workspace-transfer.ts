/**
 * A person's own access to the files of a session. It needs no approval, because the person requests it themselves. Every change is
 * made in the session's sandbox and under its lease, saved like that of a call, and recorded in the event log, so that the model is
 * told. Reading leaves no trace: if the sandbox is open on this instance, its own tools are used, so the same confinement and limits
 * apply; otherwise downloads are of the files as last saved, start no sandbox, and don't take one from another instance.
 */
import { posix } from 'node:path'
import type { Readable } from 'node:stream'
import type { FileChange } from '../../../contract/file-changes.ts'
import { EDIT_BYTES, type FileListing, type WorkspaceFile } from '../../../contract/rest.ts'
import type { FileChange as SandboxChange } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { ToolResult } from '../../sandbox/port.ts'
import type { Workspace } from '../sandboxes/open-workspace.ts'
import type { SessionManager } from '../sandboxes/session-manager.ts'
import { listSaved, listSavedFolder, readSaved } from './saved-files.ts'
import { archiveOf, type OpenedFile } from './workspace-archive.ts'

const CHUNK_BYTES = 1024 * 1024
const MAX_ENTRIES = 10_000

export type TransferSessions = Pick<SessionManager, 'run' | 'state' | 'openSaved'>

export interface TransferOptions {
  /** Throws if the session may not store anything new. */
  checkQuota?: (sessionId: string) => Promise<void>
  /** The maximum size of the files in an archive. Files full of zeros cost nothing to store, but time to pack. */
  maxArchiveBytes?: number
}

export class WorkspaceTransfer {
  readonly #sessions: TransferSessions
  readonly #checkQuota: (sessionId: string) => Promise<void>
  readonly #maxBytes: number

  constructor(
    sessions: TransferSessions,
    { checkQuota = async () => {}, maxArchiveBytes = 2 ** 30 }: TransferOptions = {}
  ) {
    this.#sessions = sessions
    this.#checkQuota = checkQuota
    this.#maxBytes = maxArchiveBytes
  }

  /** Lists one folder (`''` is the workspace itself), or everything. */
  async list(sessionId: string, folder?: string): Promise<FileListing> {
    if (!this.#isOpenHere(sessionId)) {
      const saved = await this.#sessions.openSaved(sessionId)
      await saved.close()
      const files = folder === undefined ? listSaved(saved) : listSavedFolder(saved, folder)
      return { files: files.slice(0, MAX_ENTRIES), truncated: files.length > MAX_ENTRIES }
    }
    return this.#inSandbox(sessionId, async (workspace) => {
      const what = folder === undefined ? { recursive: true } : { path: folder === '' ? '.' : folder }
      const reply = await ask(workspace, 'list_files', { ...what, maxEntries: MAX_ENTRIES })
      const entries = Array.isArray(reply.entries) ? reply.entries : []
      return { files: entries.filter(isRecord).map(asFile), truncated: reply.truncated === true }
    })
  }

  /**
   * Reads in chunks, so that a large file is never whole in memory. The first chunk is read before this resolves, so errors come
   * early. Never returns more than the announced size; a file that has become shorter is an error.
   */
  async read(sessionId: string, path: string): Promise<OpenedFile> {
    if (this.#isOpenHere(sessionId)) return this.#read(sessionId, path)
    const saved = await this.#sessions.openSaved(sessionId)
    try {
      return await readSaved(saved, path, CHUNK_BYTES)
    } finally {
      await saved.close() // what is being read stays open
    }
  }

  async #read(sessionId: string, path: string): Promise<OpenedFile> {
    const first = await this.#chunk(sessionId, path, 0)
    const more = (offset: number) => this.#chunk(sessionId, path, offset)
    async function* chunks(): AsyncIterable<Buffer> {
      let chunk = first
      for (let offset = 0; offset < first.size; ) {
        if (offset > 0) chunk = await more(offset)
        const bytes = chunk.bytes.subarray(0, first.size - offset)
        if (bytes.length === 0) throw fileRefused('The file became shorter while it was being read.')
        yield bytes
        offset += bytes.length
      }
    }
    return { size: first.size, chunks: chunks() }
  }

  /** Every regular file that can be read, as tar.gz. */
  async archive(sessionId: string): Promise<Readable> {
    const maxBytes = this.#maxBytes
    if (!this.#isOpenHere(sessionId)) {
      const saved = await this.#sessions.openSaved(sessionId)
      const read = (path: string) => readSaved(saved, path, CHUNK_BYTES)
      return archiveOf({ files: listSaved(saved).filter(isFile), read, maxBytes, done: () => saved.close() })
    }
    const { files, truncated } = await this.list(sessionId)
    if (truncated)
      throw new AppError(
        'invalid',
        'too_many_files',
        `Not all files can be listed: there are more than ${MAX_ENTRIES}, their paths are too long, or folders are nested too deeply. Pack them with a command.`
      )
    return archiveOf({ files: files.filter(isFile), read: (path) => this.#read(sessionId, path), maxBytes })
  }

  /** Makes a folder, or moves or deletes a file or folder. */
  change(sessionId: string, change: Exclude<SandboxChange, { kind: 'write' }>): Promise<void> {
    const { kind, path } = change
    const done = { folder: 'created', move: 'moved', delete: 'deleted' } as const
    return this.#change(sessionId, change, {
      action: done[kind],
      path: plain(path),
      ...(kind === 'move' && { to: plain(change.to) })
    })
  }

  /** Writes a small file only if it still has the content with this SHA-256, or with null only if there is nothing yet. */
  replace(sessionId: string, path: string, content: Buffer, expected: string | null): Promise<void> {
    if (content.length > EDIT_BYTES) throw fileRefused(`At most ${EDIT_BYTES / 1024} kB can be edited here.`)
    const change = { kind: 'write', path, data: content.toString('base64'), expected } as const
    return this.#change(sessionId, change, { action: expected === null ? 'created' : 'edited', path: plain(path) })
  }

  async #change(sessionId: string, change: SandboxChange, recorded: FileChange): Promise<void> {
    if (change.kind !== 'delete') await this.#checkQuota(sessionId)
    return this.#sessions.run(sessionId, async (workspace) => {
      const { problem } = await workspace.change(change)
      if (problem?.code === 'file_refused') throw fileRefused(problem.message)
      if (problem) throw new AppError('conflict', problem.code, problem.message)
      await workspace.saveFiles()
      await workspace.recordChange(recorded)
    })
  }

  async write(sessionId: string, path: string, content: Buffer): Promise<void> {
    await this.#checkQuota(sessionId)
    return this.#sessions.run(sessionId, async (workspace) => {
      for (let offset = 0; offset === 0 || offset < content.length; offset += CHUNK_BYTES) {
        const part = content.subarray(offset, offset + CHUNK_BYTES).toString('base64')
        await ask(workspace, 'write_file', { path, content: part, encoding: 'base64', append: offset > 0 })
      }
      await workspace.saveFiles()
      await workspace.recordChange({ action: 'uploaded', path: plain(path) })
    })
  }

  #chunk(sessionId: string, path: string, offset: number): Promise<{ bytes: Buffer; size: number }> {
    return this.#inSandbox(sessionId, async (workspace) => {
      const reply = await ask(workspace, 'read_file', { path, encoding: 'base64', offset, limit: CHUNK_BYTES })
      const { size } = reply
      if (!Number.isSafeInteger(size) || Number(size) < 0)
        throw fileRefused('The sandbox did not report the size of this file.')
      return { bytes: Buffer.from(String(reply.content ?? ''), 'base64'), size: Number(size) }
    })
  }

  #isOpenHere(sessionId: string): boolean {
    return this.#sessions.state(sessionId) !== 'none'
  }

  /** A download that began in the sandbox does not follow it to another instance, nor start another sandbox. */
  #inSandbox<T>(sessionId: string, job: (workspace: Workspace) => Promise<T>): Promise<T> {
    if (this.#isOpenHere(sessionId)) return this.#sessions.run(sessionId, job)
    const message = 'The sandbox ended or went to another instance meanwhile. Start the download again.'
    return Promise.reject(new AppError('unavailable', 'connection_lost', message))
  }
}

/** The path as the page lists it. */
const plain = (path: string) => posix.relative('/workspace', posix.resolve('/workspace', path))

const isFile = ({ type }: WorkspaceFile) => type === 'file'

async function ask(
  workspace: Workspace,
  name: string,
  args: Record<string, unknown>
): Promise<Record<string, unknown>> {
  const result = await workspace.callUnrecorded(name, args)
  if (result.isError) throw fileRefused(sentenceOf(result))
  return result.structuredContent ?? {}
}

function fileRefused(sentence: string): AppError {
  return new AppError('invalid', 'file_refused', sentence)
}

function sentenceOf(result: ToolResult): string {
  const [first] = result.content as { text?: unknown }[]
  return String(first?.text ?? 'The sandbox refused the call.').slice(0, 500)
}

const TYPES = ['file', 'directory', 'symlink'] as const

function asFile({ path, type, size, mtimeMs }: Record<string, unknown>): WorkspaceFile {
  const number = (value: unknown) => (typeof value === 'number' ? value : 0)
  const known = TYPES.find((each) => each === type) ?? 'other'
  return { path: String(path), type: known, size: number(size), mtimeMs: number(mtimeMs) }
}
