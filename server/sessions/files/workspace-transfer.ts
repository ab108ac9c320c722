/**
 * A person's own access to the files of a session: list, download, upload. It needs no approval, because the person requests it
 * themselves, and leaves no trace in the conversation. If the sandbox is open on this instance, its own tools are used, so the same
 * confinement and limits apply. Otherwise downloads are of the files as last saved: they start no sandbox, and don't take one from
 * another instance.
 */
import type { Readable } from 'node:stream'
import type { FileListing, WorkspaceFile } from '../../../contract/rest.ts'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { ToolResult } from '../../sandbox/port.ts'
import type { SessionManager, Workspace } from '../sandboxes/session-manager.ts'
import { listSaved, readSaved } from './saved-files.ts'
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

  async list(sessionId: string): Promise<FileListing> {
    if (!this.#isOpenHere(sessionId)) {
      const saved = await this.#sessions.openSaved(sessionId)
      await saved.close()
      const files = listSaved(saved)
      return { files: files.slice(0, MAX_ENTRIES), truncated: files.length > MAX_ENTRIES }
    }
    return this.#inSandbox(sessionId, async (workspace) => {
      const reply = await ask(workspace, 'list_files', { recursive: true, maxEntries: MAX_ENTRIES })
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

  async write(sessionId: string, path: string, content: Buffer): Promise<void> {
    await this.#checkQuota(sessionId)
    return this.#sessions.run(sessionId, async (workspace) => {
      for (let offset = 0; offset === 0 || offset < content.length; offset += CHUNK_BYTES) {
        const part = content.subarray(offset, offset + CHUNK_BYTES).toString('base64')
        await ask(workspace, 'write_file', { path, content: part, encoding: 'base64', append: offset > 0 })
      }
      await workspace.saveFiles()
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
