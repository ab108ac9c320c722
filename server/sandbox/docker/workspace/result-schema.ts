/**
 * Checks the sandbox's answers by hand: they are untrusted, some are large, and a general validator would take longer than the
 * call. Every reader builds a new value from the fields it knows and throws on anything else.
 */
import type {
  ChangesResult,
  FetchResult,
  LimitsResult,
  PathTarget,
  RestoreResult,
  WorkspaceEntry
} from '../../../../workspace-server/protocol.ts'
import { isRecord } from '../../../lib/is-record.ts'
import type { ToolDefinition, ToolResult } from '../../port.ts'
import { isWorkspacePath } from './workspace-path.ts'

const MAX_CONTENT_PARTS = 1000
const MAX_TOOLS = 200
const MAX_ENTRIES = 200_000
const MAX_NAME_CHARS = 200
const MAX_REASON_CHARS = 500
const MAX_INTERFACES = 100
/** For one fetch, which contains runs of whole blocks in at most 2 MB. */
const MAX_HOLES = 1024
const MAX_KERNEL_PARTS = 16

/** The part of a Standard Schema that the MCP client needs. */
export interface ResultSchema<T> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'mcp-orchestrator'
    /** Never set; it only tells the compiler the type of the result. */
    readonly types?: { readonly input: unknown; readonly output: T }
    readonly validate: (value: unknown) => { value: T } | { issues: { message: string }[] }
  }
}

function schema<T>(read: (value: Record<string, unknown>) => T): ResultSchema<T> {
  const validate = (value: unknown) => {
    try {
      return { value: read(record(value, 'the result')) }
    } catch (error) {
      return { issues: [{ message: error instanceof Error ? error.message : 'unreadable' }] }
    }
  }
  return { '~standard': { version: 1, vendor: 'mcp-orchestrator', validate } }
}

export const emptyResult = schema<Record<string, never>>(() => ({}))

export const toolResult = schema<ToolResult>(({ content, structuredContent, isError }) => ({
  content: list(content, 'content', MAX_CONTENT_PARTS).map((part) => {
    const { type } = record(part, 'a content part')
    text(type, 'a content type', MAX_NAME_CHARS)
    return part
  }),
  ...(structuredContent === undefined ? {} : { structuredContent: record(structuredContent, 'structuredContent') }),
  ...(isError === undefined ? {} : { isError: flag(isError, 'isError') })
}))

export const toolList = schema<ToolDefinition[]>(({ tools }) =>
  list(tools, 'tools', MAX_TOOLS).map((each) => {
    const { name, description, inputSchema, annotations } = record(each, 'a tool')
    return {
      name: text(name, 'a tool name', MAX_NAME_CHARS),
      inputSchema: record(inputSchema, 'an input schema'),
      ...(description === undefined ? {} : { description: text(description, 'a description') }),
      ...(annotations === undefined ? {} : { annotations: record(annotations, 'annotations') })
    }
  })
)

export const limitsResult = schema<LimitsResult>((value) => ({
  uid: number(value.uid, 'uid'),
  memoryBytes: numberOrNull(value.memoryBytes, 'memoryBytes'),
  pids: numberOrNull(value.pids, 'pids'),
  cpus: numberOrNull(value.cpus, 'cpus'),
  interfaces: list(value.interfaces, 'interfaces', MAX_INTERFACES).map((name) => text(name, 'an interface', 64)),
  capabilities: text(value.capabilities, 'capabilities', 64),
  noNewPrivileges: value.noNewPrivileges === null ? null : flag(value.noNewPrivileges, 'noNewPrivileges'),
  seccomp: numberOrNull(value.seccomp, 'seccomp'),
  openKernelParts:
    value.openKernelParts === null
      ? null
      : list(value.openKernelParts, 'openKernelParts', MAX_KERNEL_PARTS).map((part) =>
          text(part, 'a kernel part', 100)
        ),
  rootWritable: flag(value.rootWritable, 'rootWritable'),
  workspaceBytes: number(value.workspaceBytes, 'workspaceBytes'),
  workspaceInodes: number(value.workspaceInodes, 'workspaceInodes')
}))

export const changesResult = schema<ChangesResult>((value) => ({
  seq: number(value.seq, 'seq'),
  put: list(value.put, 'put', MAX_ENTRIES).map(readEntry),
  deleted: list(value.deleted, 'deleted', MAX_ENTRIES).map(path),
  skipped: list(value.skipped, 'skipped', MAX_ENTRIES).map(readReason),
  more: flag(value.more, 'more')
}))

export const fetchResult = schema<FetchResult>(({ data, holes, eof }) => ({
  data: text(data, 'data'),
  holes: list(holes, 'holes', MAX_HOLES).map(readHole),
  eof: flag(eof, 'eof')
}))

function readHole(value: unknown): { at: number; length: number } {
  const { at, length } = record(value, 'a hole')
  return { at: count(at, 'the place of a hole'), length: count(length, 'the length of a hole') }
}

export const restoreResult = schema<RestoreResult>(({ failed }) => ({
  failed: list(failed, 'failed', MAX_ENTRIES).map((value) => ({
    ...readReason(value),
    noRoom: flag(record(value, 'a failure').noRoom, 'noRoom')
  }))
}))

export const resolveResult = (count: number) =>
  schema<PathTarget[]>(({ targets }) => {
    const read = list(targets, 'targets', count).map(readTarget)
    if (read.length !== count) throw new Error(`there are ${read.length} targets instead of ${count}`)
    return read
  })

const TARGET_KINDS = ['new', 'file', 'folder', 'other', 'unusable'] as const
const MAX_TARGET_CHARS = 8192

export function readTarget(value: unknown): PathTarget {
  const { path: where, is, bytes, throughLink, problem } = record(value, 'a target')
  const kind = TARGET_KINDS.find((known) => known === is)
  if (!kind) throw new Error('a target has an unknown kind')
  return {
    path: where === null ? null : text(where, 'a target', MAX_TARGET_CHARS),
    is: kind,
    ...(bytes === undefined ? {} : { bytes: number(bytes, 'bytes') }),
    ...(throughLink === true ? { throughLink } : {}),
    ...(problem === undefined ? {} : { problem: text(problem, 'a problem').slice(0, MAX_REASON_CHARS) })
  }
}

function readEntry(value: unknown): WorkspaceEntry & { data?: string } {
  const entry = record(value, 'an entry')
  const base = { path: path(entry.path), mtimeMs: number(entry.mtimeMs, 'mtimeMs') }
  if (entry.type === 'link') return { ...base, type: 'link', target: text(entry.target, 'a target', 8192) }
  const mode = number(entry.mode, 'mode')
  if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777) throw new Error('mode is out of range')
  if (entry.type === 'dir') return { ...base, type: 'dir', mode }
  if (entry.type !== 'file') throw new Error('an entry is not a file, dir or link')
  const size = number(entry.size, 'size')
  if (!Number.isSafeInteger(size) || size < 0) throw new Error('size is out of range')
  const hash = text(entry.hash, 'hash', 64)
  if (!/^[0-9a-f]{64}$/.test(hash)) throw new Error('hash is not a SHA-256')
  const data = entry.data === undefined ? {} : { data: text(entry.data, 'data') }
  return { ...base, type: 'file', mode, size, hash, ...data }
}

function readReason(value: unknown): { path: string; reason: string } {
  const { path: where, reason } = record(value, 'an entry')
  return { path: path(where), reason: text(reason, 'a reason').slice(0, MAX_REASON_CHARS) }
}

function path(value: unknown): string {
  if (!isWorkspacePath(value)) throw new Error('a path is outside the workspace')
  return value
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (!isRecord(value)) throw new Error(`${what} is not an object`)
  return value
}

function list(value: unknown, what: string, max: number): unknown[] {
  if (!Array.isArray(value) || value.length > max) throw new Error(`${what} is not a list of at most ${max}`)
  return value
}

function text(value: unknown, what: string, max = Number.POSITIVE_INFINITY): string {
  if (typeof value !== 'string' || value.length > max)
    throw new Error(`${what} is not a text of at most ${max} characters`)
  return value
}

function number(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Error(`${what} is not a number`)
  return value
}

function count(value: unknown, what: string): number {
  const whole = number(value, what)
  if (!Number.isSafeInteger(whole) || whole < 0) throw new Error(`${what} is out of range`)
  return whole
}

function numberOrNull(value: unknown, what: string): number | null {
  return value === null ? null : number(value, what)
}

function flag(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw new Error(`${what} is not true or false`)
  return value
}
