/**
 * Paths inside the workspace as the kernel stores them: bytes, written as a string with one character per byte, so that names
 * that are not valid UTF-8 can be keys and sort by their bytes. They are relative to the workspace; '' is the workspace itself.
 */
import { isUtf8 } from 'node:buffer'
import type { WorkspacePath } from '../protocol.ts'

export type RawPath = string

const BYTES_PREFIX = '\0b64:'
const PLAIN = /^[ -~]*$/
const MAX_PATH_BYTES = 4096

export function rawFromText(text: string): RawPath {
  return PLAIN.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

/** The form that file system calls take. */
export function fsPath(raw: RawPath): string | Buffer {
  return PLAIN.test(raw) ? raw : Buffer.from(raw, 'latin1')
}

export function toWire(raw: RawPath): WorkspacePath {
  if (PLAIN.test(raw)) return raw
  const bytes = Buffer.from(raw, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : `${BYTES_PREFIX}${bytes.toString('base64')}`
}

/** The bytes of a path or link target as it came over the wire. */
export function fromWire(text: string): RawPath {
  return text.startsWith(BYTES_PREFIX)
    ? Buffer.from(text.slice(BYTES_PREFIX.length), 'base64').toString('latin1')
    : rawFromText(text)
}

/** Returns null if it is not a plain relative path: empty, absolute, with `.`, `..`, empty parts or NUL, or too long. */
export function pathFromWire(text: string): RawPath | null {
  const raw = fromWire(text)
  if (raw === '' || raw.length > MAX_PATH_BYTES || raw.includes('\0')) return null
  return raw.split('/').some((part) => part === '' || part === '.' || part === '..') ? null : raw
}

export function parentOf(raw: RawPath): RawPath {
  const slash = raw.lastIndexOf('/')
  return slash === -1 ? '' : raw.slice(0, slash)
}

export function nameOf(raw: RawPath): string {
  return raw.slice(raw.lastIndexOf('/') + 1)
}

export function childOf(folder: RawPath, name: string): RawPath {
  return folder === '' ? name : `${folder}/${name}`
}
