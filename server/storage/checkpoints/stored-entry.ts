import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'

const MAX_TEXT_CHARS = 16_384

/** Returns the entry with known fields only, because it came out of a container. */
export function storedEntry(entry: WorkspaceEntry): WorkspaceEntry {
  const { path, mtimeMs } = entry
  const base = isText(path) && path !== '' && Number.isFinite(mtimeMs)
  if (base && entry.type === 'link' && isText(entry.target)) {
    return { path, type: 'link', target: entry.target, mtimeMs }
  }
  if (base && entry.type === 'dir' && isMode(entry.mode)) return { path, type: 'dir', mode: entry.mode, mtimeMs }
  if (base && entry.type === 'file' && isMode(entry.mode) && isHash(entry.hash)) {
    return { path, type: 'file', mode: entry.mode, mtimeMs, size: entry.size, hash: entry.hash }
  }
  throw new AppError('invalid', 'invalid_entry', 'The workspace reported an invalid entry.')
}

/** Approximate size of the entry in a manifest. */
export function entryBytes(entry: WorkspaceEntry): number {
  return Buffer.byteLength(JSON.stringify(entry)) + 1
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT_CHARS
}

function isMode(mode: unknown): boolean {
  return typeof mode === 'number' && Number.isInteger(mode) && mode >= 0 && mode <= 0o7777
}

function isHash(hash: unknown): boolean {
  return typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash)
}
