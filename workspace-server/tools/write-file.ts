import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { WorkspaceRoot } from '../files/workspace-root.ts'
import { MAX_LINE_BYTES } from '../protocol.ts'
import { asToolError } from './system-error.ts'
import { type Tool, ToolError, type ToolReply } from './tool.ts'
import { ToolArguments } from './tool-arguments.ts'

const { O_WRONLY, O_CREAT, O_EXCL, O_APPEND } = constants
const EXECUTABLE = 0o111

/** `onWritten` gets the real path of every file written. */
export function writeFileTool(root: WorkspaceRoot, onWritten: (real: string) => void): Tool {
  return {
    name: 'write_file',
    title: 'Write a file',
    description:
      'Writes a file in the workspace, replacing it whole or appending to it. Missing folders are made. A replaced file is either completely old or completely new, never half written.',
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'Path in the workspace.' },
        content: { type: 'string', description: 'The new content, or what is appended.' },
        encoding: {
          type: 'string',
          enum: ['utf8', 'base64'],
          description: 'How content is written here; default utf8.'
        },
        append: { type: 'boolean', description: 'Add to the end instead of replacing; default false.' },
        executable: { type: 'boolean', description: 'Make the file executable; default false leaves the mode alone.' }
      },
      required: ['path', 'content'],
      additionalProperties: false
    },
    outputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        bytesWritten: { type: 'integer' },
        size: { type: 'integer', description: 'Size of the file afterwards.' },
        created: { type: 'boolean' }
      },
      required: ['path', 'bytesWritten', 'size', 'created'],
      additionalProperties: false
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    run: async (args) => write(root, onWritten, args)
  }
}

function write(root: WorkspaceRoot, onWritten: (real: string) => void, args: Record<string, unknown>): ToolReply {
  const given = new ToolArguments(args, ['path', 'content', 'encoding', 'append', 'executable'])
  const path = given.path('path')
  const content = given.text('content', MAX_LINE_BYTES)
  const bytes =
    given.choice('encoding', ['utf8', 'base64'], 'utf8') === 'base64' ? decode(content) : Buffer.from(content)
  const [append, executable] = [given.flag('append'), given.flag('executable')]
  try {
    const real = root.resolve(path)
    const existing = lstatSync(real, { throwIfNoEntry: false })
    if (existing && !existing.isFile()) throw new ToolError(`"${path}" exists and is not a regular file.`)
    if (path.endsWith('/')) throw new ToolError(`"${path}" names a folder; give the path of a file.`)
    mkdirSync(dirname(real), { recursive: true })
    const job = { root, real, bytes, existing, executable }
    if (append) appendTo(job)
    else replace(job)
    onWritten(real)
    return report(
      root.relative(real),
      bytes.length,
      append ? (existing?.size ?? 0) + bytes.length : bytes.length,
      !existing
    )
  } catch (error) {
    throw asToolError(error, path)
  }
}

interface WriteJob {
  root: WorkspaceRoot
  real: string
  bytes: Buffer
  existing: Stats | undefined
  executable: boolean
}

function replace({ root, real, bytes, existing, executable }: WriteJob): void {
  const temporary = join(dirname(real), `.mcp-write-${randomBytes(8).toString('hex')}`)
  const { fd } = root.open(temporary, O_WRONLY | O_CREAT | O_EXCL)
  try {
    try {
      writeAll(fd, bytes)
      if (existing || executable) fchmodSync(fd, modeOf(existing, executable))
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, real)
  } catch (error) {
    unlinkSync(temporary)
    throw error
  }
}

/** Takes back a half-written end, so that a full disk leaves the file as it was. */
function appendTo({ root, real, bytes, existing, executable }: WriteJob): void {
  const { fd, stats } = root.open(real, O_WRONLY | O_CREAT | O_APPEND)
  try {
    writeAll(fd, bytes)
    if (executable) fchmodSync(fd, modeOf(existing, true))
  } catch (error) {
    if (existing) ftruncateSync(fd, stats.size)
    else unlinkSync(real)
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

function report(path: string, bytesWritten: number, size: number, created: boolean): ToolReply {
  const text = `${created ? 'Created' : 'Wrote'} ${path}: ${bytesWritten} bytes written, ${size} in all.`
  return { content: [{ type: 'text', text }], structuredContent: { path, bytesWritten, size, created } }
}
