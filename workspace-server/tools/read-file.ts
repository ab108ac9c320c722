import { isUtf8 } from 'node:buffer'
import { closeSync, constants } from 'node:fs'
import { imageType } from '../../server/lib/media/sniff-media.ts'
import { plural } from '../../server/lib/plural.ts'
import { pathTarget, resolveExpected, TargetChangedError } from '../files/path-target.ts'
import { readRange } from '../files/read-range.ts'
import { type LineRange, readLines } from '../files/text-lines.ts'
import { wholeCharactersFromStart } from '../files/utf8.ts'
import type { WorkspaceRoot } from '../files/workspace-root.ts'
import { asToolError } from './system-error.ts'
import { objectSchema, READS, type Tool, type ToolContext, ToolError, type ToolReply } from './tool.ts'
import { ToolArguments } from './tool-arguments.ts'

const MAX_TEXT_BYTES = 256 * 1024
const MAX_BINARY_BYTES = 1024 * 1024
const MAX_IMAGE_BYTES = 3 * 1024 * 1024
const MAX_COUNTED_BYTES = 64 * 1024 * 1024
const PROBE_BYTES = 8192
const PDF = 'application/pdf'
const PDF_START = '%PDF-'
const ENCODINGS = ['auto', 'utf8', 'base64'] as const

export function readFileTool(root: WorkspaceRoot): Tool {
  return {
    name: 'read_file',
    title: 'Read a file',
    description:
      'Reads a file of the workspace. Text: offset is the first line (from 1), limit the number of lines. Binary files come as base64, where offset (from 0) and limit count bytes; images come as images, PDFs as PDFs. Long files are cut (256 kB of text, 1 MB of binary) and the reply says where to continue.',
    inputSchema: objectSchema(
      {
        path: { type: 'string', description: 'Path in the workspace.' },
        offset: { type: 'integer', minimum: 0, description: 'First line of text (from 1), or first byte (from 0).' },
        limit: { type: 'integer', minimum: 1, description: 'Number of lines of text, or of bytes.' },
        encoding: { type: 'string', enum: [...ENCODINGS], description: 'Defaults to auto: text if it is valid UTF-8.' }
      },
      'path'
    ),
    outputSchema: objectSchema(
      {
        path: { type: 'string' },
        encoding: { type: 'string', enum: ['utf8', 'base64', 'image', 'pdf'] },
        content: { type: 'string', description: 'Absent for images and PDFs, which are in the content blocks.' },
        mimeType: { type: 'string', description: 'The type of an image or PDF.' },
        size: { type: 'integer', description: 'Size of the whole file, in bytes.' },
        offset: { type: 'integer', description: 'First line or byte in this reply.' },
        count: { type: 'integer', description: 'Lines or bytes in this reply.' },
        totalLines: {
          type: ['integer', 'null'],
          description: 'Lines in the whole file; null if it is too large to count.'
        },
        truncated: { type: 'boolean', description: 'Whether there is more after this.' }
      },
      'path',
      'encoding',
      'size',
      'offset',
      'count',
      'truncated'
    ),
    annotations: READS,
    run: (args, context) => read(root, args, context)
  }
}

interface OpenFile {
  path: string
  fd: number
  size: number
  offset: number | undefined
  limit: number | undefined
}

async function read(
  root: WorkspaceRoot,
  args: Record<string, unknown>,
  { signal, expected }: ToolContext
): Promise<ToolReply> {
  const given = new ToolArguments(args, ['path', 'offset', 'limit', 'encoding'])
  const path = given.path('path')
  const offset = given.integer('offset', { min: 0, max: Number.MAX_SAFE_INTEGER })
  const limit = given.integer('limit', { min: 1, max: Number.MAX_SAFE_INTEGER })
  const encoding = given.choice('encoding', ENCODINGS, 'auto')
  try {
    const real = resolveExpected(root, path, expected)
    const { fd, stats } = root.open(real, constants.O_RDONLY)
    try {
      // An open file can't be swapped any more, so this check holds for what is read.
      if (expected && !root.isAt(fd, real)) throw new TargetChangedError(pathTarget(root, path))
      if (stats.isDirectory()) throw new ToolError(`"${path}" is a folder; use list_files to see what is in it.`)
      if (!stats.isFile()) throw new ToolError(`"${path}" is not a regular file, so it can't be read.`)
      const file = { path: root.relative(real), fd, size: stats.size, offset, limit }
      return await readOpen(file, encoding, signal)
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    throw asToolError(error, path)
  }
}

async function readOpen(file: OpenFile, encoding: (typeof ENCODINGS)[number], signal: AbortSignal): Promise<ToolReply> {
  if (encoding === 'base64') return binaryReply(file)
  const probe = readRange(file.fd, 0, PROBE_BYTES)
  const mimeType = encoding === 'auto' ? shownType(probe) : undefined
  if (mimeType !== undefined && file.offset === undefined && file.limit === undefined && file.size <= MAX_IMAGE_BYTES)
    return shownReply(file, mimeType)
  if (encoding === 'auto' && (mimeType !== undefined || !looksLikeText(probe, file.size))) return binaryReply(file)
  const first = Math.max(1, file.offset ?? 1)
  const range = await readLines(file.fd, file.size, {
    first,
    maxLines: file.limit ?? Number.MAX_SAFE_INTEGER,
    maxBytes: MAX_TEXT_BYTES,
    maxCountedBytes: MAX_COUNTED_BYTES,
    signal
  })
  if (encoding === 'auto' && !isUtf8(range.bytes)) return binaryReply({ ...file, offset: undefined, limit: undefined })
  return textReply(file, first, range)
}

function looksLikeText(probe: Buffer, size: number): boolean {
  return !probe.includes(0) && isUtf8(size > probe.length ? wholeCharactersFromStart(probe) : probe)
}

function textReply(file: OpenFile, first: number, range: LineRange): ToolReply {
  if (range.lines === 0 && first > 1)
    throw new ToolError(
      `"${file.path}" has only ${range.totalLines === null ? 'fewer lines' : plural(range.totalLines, 'line')}, so there is no line ${first}.`
    )
  const content = range.bytes.toString('utf8')
  const { path, size } = file
  const next = first + range.lines
  const where = range.cutInLine
    ? `line ${first} is longer than ${MAX_TEXT_BYTES} bytes and was cut; read the rest with encoding base64 or a command`
    : `continue with offset ${next}`
  const note = range.truncated ? `\n[cut after ${range.lines} of ${range.totalLines ?? 'many'} lines; ${where}]` : ''
  return {
    content: [{ type: 'text', text: `${content}${note}` }],
    structuredContent: {
      path,
      encoding: 'utf8',
      content,
      size,
      offset: first,
      count: range.lines,
      totalLines: range.totalLines,
      truncated: range.truncated
    }
  }
}

function binaryReply(file: OpenFile): ToolReply {
  const { path, size, offset = 0 } = file
  if (offset > size) throw new ToolError(`"${path}" has only ${plural(size, 'byte')}, so there is no byte ${offset}.`)
  const bytes = readRange(file.fd, offset, Math.min(file.limit ?? MAX_BINARY_BYTES, MAX_BINARY_BYTES))
  const truncated = offset + bytes.length < size
  const content = bytes.toString('base64')
  const note = truncated ? `; continue with encoding base64 and offset ${offset + bytes.length}` : ''
  return {
    content: [
      {
        type: 'text',
        text: `[${bytes.length} of ${plural(size, 'byte')} from byte ${offset}, as base64${note}]\n${content}`
      }
    ],
    structuredContent: { path, encoding: 'base64', content, size, offset, count: bytes.length, truncated }
  }
}

function shownReply(file: OpenFile, mimeType: string): ToolReply {
  const { path, size } = file
  const bytes = readRange(file.fd, 0, size)
  const data = bytes.toString('base64')
  const isPdf = mimeType === PDF
  const encoding = isPdf ? 'pdf' : 'image'
  const uri = `file:///workspace/${encodeURI(path.toWellFormed())}`
  return {
    content: [
      isPdf ? { type: 'resource', resource: { uri, mimeType, blob: data } } : { type: 'image', data, mimeType }
    ],
    structuredContent: { path, encoding, mimeType, size, offset: 0, count: bytes.length, truncated: false }
  }
}

/** The type of an image or PDF that models can look at, from its first bytes. */
function shownType(start: Buffer): string | undefined {
  return start.toString('latin1', 0, PDF_START.length) === PDF_START ? PDF : imageType(start)
}
