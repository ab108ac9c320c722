/** Reads the parameters of the `workspace/…` requests. Throws an Error with a sentence that says what is wrong. */
import { isIP } from 'node:net'
import { isRecord } from '../server/lib/is-record.ts'
import {
  type ChangesParams,
  type ClaimParams,
  type ExpectedTarget,
  type FetchParams,
  type FileChange,
  MAX_REACH_MS,
  MAX_REACH_TARGETS,
  MAX_RESOLVED_PATHS,
  type ReachParams,
  type ReachTarget,
  type ResolveParams,
  type RestoreParams
} from './protocol.ts'

const KINDS = ['new', 'file', 'folder', 'other', 'unusable'] as const
const MAX_RESTORED = 20_000

export function claimParams(params: unknown): ClaimParams {
  return { epoch: whole(object(params), 'epoch') }
}

export function reachParams(params: unknown): ReachParams {
  const given = object(params)
  const { targets } = given
  if (!Array.isArray(targets)) throw new Error('"targets" must be an array.')
  if (targets.length > MAX_REACH_TARGETS) throw new Error(`At most ${MAX_REACH_TARGETS} targets can be tried at once.`)
  return { targets: targets.map(reachTarget), timeoutMs: Math.min(whole(given, 'timeoutMs'), MAX_REACH_MS) }
}

function reachTarget(value: unknown): ReachTarget {
  const given = object(value)
  const { protocol } = given
  if (protocol !== 'tcp' && protocol !== 'udp') throw new Error('"protocol" must be tcp or udp.')
  const host = text(given, 'host')
  const port = whole(given, 'port')
  if (isIP(host) === 0 || port < 1 || port > 65_535) throw new Error('A target needs an IP address and a port.')
  return { protocol, host, port }
}

export function changesParams(params: unknown): ChangesParams {
  const given = object(params)
  if (given.full !== undefined && typeof given.full !== 'boolean') throw new Error('"full" must be true or false.')
  return { ack: whole(given, 'ack'), full: given.full ?? false }
}

export function fetchParams(params: unknown): FetchParams {
  const given = object(params)
  return { path: text(given, 'path'), offset: whole(given, 'offset'), length: whole(given, 'length') }
}

export function restoreParams(params: unknown): RestoreParams {
  const { entries, deleted = [], content } = object(params)
  if (!Array.isArray(entries)) throw new Error('"entries" must be an array.')
  if (!Array.isArray(deleted) || !deleted.every((path) => typeof path === 'string'))
    throw new Error('"deleted" must be an array of strings.')
  if (entries.length + deleted.length > MAX_RESTORED)
    throw new Error(`At most ${MAX_RESTORED} entries can be restored at once.`)
  if (content !== undefined && !(content instanceof Uint8Array)) throw new Error('"content" must follow its line.')
  return { deleted, entries: entries.map(restoredEntry), ...(content !== undefined && { content }) }
}

export function resolveParams(params: unknown): ResolveParams {
  const { paths } = object(params)
  if (!Array.isArray(paths) || !paths.every((path) => typeof path === 'string'))
    throw new Error('"paths" must be an array of strings.')
  if (paths.length > MAX_RESOLVED_PATHS) throw new Error(`At most ${MAX_RESOLVED_PATHS} paths can be resolved at once.`)
  return { paths }
}

export function changeParams(params: unknown): FileChange {
  const given = object(params)
  const { kind, expected } = given
  const path = text(given, 'path')
  if (kind === 'folder' || kind === 'delete') return { kind, path }
  if (kind === 'move') return { kind, path, to: text(given, 'to') }
  if (kind !== 'write') throw new Error('"kind" must be write, move, folder or delete.')
  return { kind, path, data: text(given, 'data'), expected: expected === null ? null : text(given, 'expected') }
}

/** Returns undefined if the caller expects nothing. */
export function expectedTarget(value: unknown): ExpectedTarget | undefined {
  if (value === undefined) return undefined
  const { path, is, hash } = object(value)
  if (path !== null && typeof path !== 'string')
    throw new Error('"path" of the expected target must be a string or null.')
  const kind = KINDS.find((known) => known === is)
  if (is !== undefined && kind === undefined) throw new Error('"is" of the expected target is unknown.')
  if (hash !== undefined && typeof hash !== 'string') throw new Error('"hash" of the expected target must be a string.')
  return { path, is: kind, hash }
}

function restoredEntry(value: unknown): RestoreParams['entries'][number] {
  const given = object(value)
  const path = text(given, 'path')
  const mtimeMs = time(given, 'mtimeMs')
  if (given.type === 'link') return { path, type: 'link', target: text(given, 'target'), mtimeMs }
  const mode = whole(given, 'mode')
  if (given.type === 'dir') return { path, type: 'dir', mode, mtimeMs }
  if (given.type !== 'file') throw new Error('"type" must be file, dir or link.')
  return {
    path,
    type: 'file',
    mode,
    mtimeMs,
    size: whole(given, 'size'),
    hash: text(given, 'hash'),
    ...(given.data === undefined ? {} : { data: text(given, 'data') }),
    ...(given.bytes === undefined ? {} : { bytes: whole(given, 'bytes') }),
    ...(given.offset === undefined ? {} : { offset: whole(given, 'offset') })
  }
}

function object(value: unknown): Record<string, unknown> {
  if (!isRecord(value)) throw new Error('The parameters must be an object.')
  return value
}

function text(given: Record<string, unknown>, name: string): string {
  const value = given[name]
  if (typeof value !== 'string') throw new Error(`"${name}" must be a string.`)
  return value
}

function whole(given: Record<string, unknown>, name: string): number {
  const value = given[name]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw new Error(`"${name}" must be a whole number, 0 or more.`)
  return value
}

function time(given: Record<string, unknown>, name: string): number {
  const value = given[name]
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Error(`"${name}" must be a number.`)
  return value
}
