/**
 * The sandbox's answers. They are untrusted: each schema builds a new value from the fields that it knows and refuses anything else.
 */
import { z } from 'zod'
import { MAX_REACH_TARGETS, type PathTarget } from '../../../workspace-server/protocol.ts'
import { isRecord } from '../../lib/is-record.ts'

const MAX_CONTENT_PARTS = 1000
const MAX_TOOLS = 200
const MAX_ENTRIES = 200_000
const MAX_NAME_CHARS = 200
const MAX_REASON_CHARS = 500
const MAX_INTERFACES = 100
/** For one fetch, which contains runs of whole blocks in at most 2 MB. */
const MAX_HOLES = 1024
const MAX_KERNEL_PARTS = 16
const MAX_PATH_CHARS = 8192
const NOT_UTF8 = '\0b64:'

const record = z.custom<Record<string, unknown>>(isRecord)
const count = z.int().min(0)
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const path = z.custom<string>(isWorkspacePath)
const reason = z.string().transform((text) => text.slice(0, MAX_REASON_CHARS))
const part = z.custom<unknown>(
  (value) => isRecord(value) && typeof value.type === 'string' && value.type.length <= MAX_NAME_CHARS
)

export const emptyResult = record.transform(() => ({}))

export const toolResult = z.object({
  content: z.array(part).max(MAX_CONTENT_PARTS),
  structuredContent: record.optional(),
  isError: z.boolean().optional()
})

const tool = z.object({
  name: z.string().max(MAX_NAME_CHARS),
  description: z.string().optional(),
  inputSchema: record,
  annotations: record.optional()
})
export const toolList = z.object({ tools: z.array(tool).max(MAX_TOOLS) }).transform(({ tools }) => tools)

export const limitsResult = z.object({
  uid: z.number(),
  memoryBytes: z.number().nullable(),
  pids: z.number().nullable(),
  processLimit: z.number().nullable().exactOptional(),
  cpus: z.number().nullable(),
  interfaces: z.array(z.string().max(64)).max(MAX_INTERFACES),
  capabilities: z.string().max(64),
  noNewPrivileges: z.boolean().nullable(),
  seccomp: z.number().nullable(),
  openKernelParts: z.array(z.string().max(100)).max(MAX_KERNEL_PARTS).nullable(),
  rootWritable: z.boolean(),
  workspaceBytes: z.number(),
  workspaceInodes: z.number()
})

export const reachResult = z.object({ reached: z.array(count).max(MAX_REACH_TARGETS) })

export const checkResult = reachResult.extend({ limits: limitsResult })

const mode = count.max(0o7777)
const entry = z.discriminatedUnion('type', [
  z.object({ path, type: z.literal('link'), target: z.string().max(MAX_PATH_CHARS), mtimeMs: z.number() }),
  z.object({ path, type: z.literal('dir'), mode, mtimeMs: z.number() }),
  z.object({
    ...{ path, type: z.literal('file'), mode, mtimeMs: z.number(), size: count },
    hash: sha256,
    data: z.string().exactOptional()
  })
])

export const changesResult = z.object({
  seq: z.number(),
  put: z.array(entry).max(MAX_ENTRIES),
  deleted: z.array(path).max(MAX_ENTRIES),
  skipped: z.array(z.object({ path, reason })).max(MAX_ENTRIES),
  more: z.boolean()
})

const hole = z.object({ at: count, length: count })
export const fetchResult = z.object({ data: z.string(), holes: z.array(hole).max(MAX_HOLES), eof: z.boolean() })

export const fileChangeResult = z.object({
  problem: z.object({ code: z.enum(['file_changed', 'file_exists', 'file_refused']), message: reason }).exactOptional()
})

export const restoreResult = z.object({
  failed: z.array(z.object({ path, reason, noRoom: z.boolean() })).max(MAX_ENTRIES),
  removed: z.number().exactOptional()
})

export const tidyResult = z.object({ isTidy: z.boolean() })

const target = z.object({
  path: z.string().max(MAX_PATH_CHARS).nullable(),
  is: z.enum(['new', 'file', 'folder', 'other', 'unusable']),
  bytes: z.number().exactOptional(),
  hash: sha256.exactOptional(),
  throughLink: z.literal(true).exactOptional(),
  problem: reason.exactOptional()
})
export const resolveResult = (length: number) =>
  z.object({ targets: z.array(target).length(length) }).transform(({ targets }) => targets)

export function readTarget(value: unknown): PathTarget {
  return target.parse(value)
}

/** Whether a path that the sandbox reports stays inside the workspace, judged by its form only. */
export function isWorkspacePath(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > MAX_PATH_CHARS) return false
  if (!value.startsWith(NOT_UTF8)) return isInside(value)
  const encoded = value.slice(NOT_UTF8.length)
  const decoded = Buffer.from(encoded, 'base64')
  return decoded.toString('base64') === encoded && isInside(decoded.toString('latin1'))
}

function isInside(text: string): boolean {
  return !text.includes('\0') && text.split('/').every((name) => name !== '' && name !== '.' && name !== '..')
}
