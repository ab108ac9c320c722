/**
 * Names of objects: the hash of the content, its size, and a number that is never used again. The hash proves the content. The number
 * makes deleting safe: an object that nothing names stays unnamed, because nobody writes one with its name again.
 */
import { createHash, randomBytes } from 'node:crypto'

export type ObjectKind = 'pack' | 'manifest' | 'content'

const NAME = /^([0-9a-f]{64})\.([0-9a-z]{1,11})\.[0-9a-f]{16}\.(pack|manifest|content)$/

export function objectName(hash: string, bytes: number, kind: ObjectKind): string {
  return `${hash}.${bytes.toString(36)}.${randomBytes(8).toString('hex')}.${kind}`
}

/** Returns undefined for what is not one of our names. */
export function parseName(name: string): { hash: string; bytes: number; kind: string } | undefined {
  const [, hash, bytes, kind] = NAME.exec(name) ?? []
  if (hash === undefined || bytes === undefined || kind === undefined) return undefined
  return { hash, bytes: Number.parseInt(bytes, 36), kind }
}

/** The size that the name of a pack contains. */
export function packBytes(name: string): number {
  return parseName(name)?.bytes ?? 0
}

/** The folder of a session in the bucket. Every character of the id counts, lone surrogates too. */
export function sessionFolder(prefix: string, sessionId: string): string {
  const hash = createHash('sha256').update(Buffer.from(sessionId, 'utf16le')).digest('hex')
  return `${prefix}sessions/${hash}/`
}

/** The session's folder and the object's name, or undefined if the key is none of ours. */
export function parseKey(prefix: string, key: string): { folder: string; name: string } | undefined {
  const at = key.lastIndexOf('/') + 1
  const folder = key.slice(0, at)
  const name = key.slice(at)
  const isOurs = folder.startsWith(`${prefix}sessions/`) && /^[0-9a-f]{64}\/$/.test(folder.slice(prefix.length + 9))
  return isOurs && parseName(name) ? { folder, name } : undefined
}

/** The parts of `s3://bucket/prefix`. The prefix is empty, or ends with a slash. */
export function parseAddress(address: string): { bucket: string; prefix: string } {
  const [bucket = '', ...path] = address.replace(/^s3:\/\//, '').split('/')
  const prefix = path.filter((part) => part !== '').join('/')
  return { bucket, prefix: prefix === '' ? '' : `${prefix}/` }
}
