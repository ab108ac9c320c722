import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Replaced } from '../../contract/replaced-text.ts'
import { hasCode } from '../../server/lib/errors.ts'
import { plural } from '../../server/lib/plural.ts'
import { contentHash, pathTarget, resolveExpected, TargetChangedError } from '../files/path-target.ts'
import { replacedContent } from '../files/replaced-content.ts'
import type { WorkspaceRoot } from '../files/workspace-root.ts'
import { type ExpectedTarget, MAX_LINE_BYTES } from '../protocol.ts'
import { asToolError } from './system-error.ts'
import { objectSchema, type Tool, ToolError, type ToolReply } from './tool.ts'
import { ToolArguments } from './tool-arguments.ts'

const { O_WRONLY, O_CREAT, O_EXCL, O_APPEND } = constants
const EXECUTABLE = 0o111

/** `onWritten` gets the real path of every written file. */
export function writeFileTool(root: WorkspaceRoot, onWritten: (real: string) => void): Tool {
  return {
    name: 'write_file',
    title: 'Write a file',
    description:
      'Writes a file in the workspace, replacing it as a whole or appending to it. Missing folders are created. A replaced file is either completely old or completely new, never half written.',
    inputSchema: objectSchema(
      {
        path: { type: 'string', description: 'Path in the workspace.' },
        content: { type: 'string', description: 'The new content, or what to append.' },
        encoding: {
          type: 'string',
          enum: ['utf8', 'base64'],
          description: 'The encoding of content. Defaults to utf8.'
        },
        append: { type: 'boolean', description: 'Append instead of replacing. Defaults to false.' },
        executable: {
          type: 'boolean',
          description: 'Make the file executable. Defaults to false, which does not change the mode.'
        }
      },
      'path',
      'content'
    ),
    outputSchema: objectSchema(
      {
        path: { type: 'string' },
        bytesWritten: { type: 'integer' },
        size: { type: 'integer', description: 'Size of the file afterwards.' },
        created: { type: 'boolean' },
        replaced: { type: 'object', description: 'What was there before, for the record.' }
      },
      'path',
      'bytesWritten',
      'size',
      'created'
    ),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    run: async (args, { expected }) => writeFile(root, onWritten, args, expected)
  }
}

export function writeFile(
  root: WorkspaceRoot,
  onWritten: (real: string) => void,
  args: Record<string, unknown>,
  expected: ExpectedTarget | undefined
): ToolReply {
  const given = new ToolArguments(args, ['path', 'content', 'encoding', 'append', 'executable'])
  const path = given.path('path')
  const content = given.text('content', MAX_LINE_BYTES)
  const isText = given.choice('encoding', ['utf8', 'base64'], 'utf8') === 'utf8'
  const bytes = isText ? Buffer.from(content) : decode(content)
  const [append, executable] = [given.flag('append'), given.flag('executable')]
  try {
    const real = resolveExpected(root, path, expected)
    const existing = lstatSync(real, { throwIfNoEntry: false })
    if (existing && !existing.isFile()) throw new ToolError(`"${path}" exists and is not a regular file.`)
    if (path.endsWith('/')) throw new ToolError(`"${path}" names a folder; give the path of a file.`)
    const job = { root, path, real, bytes, existing, executable, approved: expected?.is, approvedHash: expected?.hash }
    let replaced: Replaced | undefined = existing ? undefined : { is: 'nothing' }
    inApprovedFolder(job, (folder) => {
      if (existing && isText && !append) replaced = replacedContent(root, join(folder, basename(real)), bytes)
      if (append) appendTo(job, folder)
      else replace(job, folder)
    })
    onWritten(real)
    const size = append ? (existing?.size ?? 0) + bytes.length : bytes.length
    return report({ path: root.relative(real), bytesWritten: bytes.length, size, created: !existing }, replaced)
  } catch (error) {
    throw asToolError(error, path)
  }
}

interface WriteJob {
  root: WorkspaceRoot
  path: string
  real: string
  bytes: Buffer
  existing: Stats | undefined
  executable: boolean
  /** The file that a person was shown, and its content. */
  approved: ExpectedTarget['is']
  approvedHash: ExpectedTarget['hash']
}

/** Errors of the kernel if something was put in the way after the path was resolved. */
const CHANGED = ['ELOOP', 'ENOTDIR', 'EEXIST', 'ENOENT']

/** The check and the write use the same open folder, so that no command can swap it in between. */
function inApprovedFolder({ root, path, real, approved }: WriteJob, put: (folder: string) => void): void {
  try {
    root.inFolder(dirname(real), approved !== 'file', put)
  } catch (error) {
    if (approved !== undefined && hasCode(error, ...CHANGED)) throw new TargetChangedError(pathTarget(root, path))
    throw error
  }
}

function replace(job: WriteJob, folder: string): void {
  const { root, path, real, bytes, existing, executable, approved, approvedHash } = job
  const temporary = join(folder, `.mcp-write-${randomBytes(8).toString('hex')}`)
  const { fd } = root.open(temporary, O_WRONLY | O_CREAT | O_EXCL)
  try {
    try {
      writeAll(fd, bytes)
      if (existing || executable) fchmodSync(fd, modeOf(existing, executable))
    } finally {
      closeSync(fd)
    }
    const place = join(folder, basename(real))
    if (approvedHash !== undefined && contentHash(root, place) !== approvedHash)
      throw new TargetChangedError(pathTarget(root, path))
    if (approved === 'new')
      linkSync(temporary, place) // unlike a rename, this never replaces anything
    else renameSync(temporary, place)
  } catch (error) {
    unlinkSync(temporary)
    throw error
  }
  if (approved === 'new') unlinkSync(temporary)
}

/** Removes a half-written end, so that a full disk leaves the file as it was. */
function appendTo({ root, real, bytes, existing, executable, approved }: WriteJob, folder: string): void {
  const place = join(folder, basename(real))
  const creation = approved === 'new' ? O_CREAT | O_EXCL : approved === 'file' ? 0 : O_CREAT
  const { fd, stats } = root.open(place, O_WRONLY | O_APPEND | creation)
  try {
    writeAll(fd, bytes)
    if (executable) fchmodSync(fd, modeOf(existing, true))
  } catch (error) {
    if (existing) ftruncateSync(fd, stats.size)
    else unlinkSync(place)
    throw error
  } finally {
    closeSync(fd)
  }
}

function modeOf(existing: Stats | undefined, executable: boolean): number {
  const mode = existing ? existing.mode & 0o777 : 0o644
  return executable ? mode | EXECUTABLE : mode
}

function writeAll(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
}

function decode(content: string): Buffer {
  const compact = content.replace(/\s+/g, '')
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(compact))
    throw new ToolError('The argument "content" is not valid base64.')
  return Buffer.from(compact, 'base64')
}

interface Written {
  path: string
  bytesWritten: number
  size: number
  created: boolean
}

function report(written: Written, replaced: Replaced | undefined): ToolReply {
  const { path, bytesWritten, size, created } = written
  const text = `${created ? 'Created' : 'Wrote'} ${path}: ${plural(bytesWritten, 'byte')} written, ${size} in all.`
  return { content: [{ type: 'text', text }], structuredContent: { ...written, ...(replaced && { replaced }) } }
}
