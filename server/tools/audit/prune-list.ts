import { type AuditFile, headOf, rowsOfKind } from './audit-files.ts'
import type { ChainHead } from './audit-row.ts'

export interface PruneLimits {
  /** Of all that may stay. */
  maxBytes: number
  maxAgeMs: number
  now: number
  /** Being written by us. */
  current: string
}

/** The files that are too old, and the oldest of those that are too many. `files` are oldest first. */
export function pruneList(files: AuditFile[], { maxBytes, maxAgeMs, now, current }: PruneLimits): AuditFile[] {
  let bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return files.filter((file) => {
    if (file.path === current || (bytes <= maxBytes && now - file.modifiedAt <= maxAgeMs)) return false
    bytes -= file.bytes
    return true
  })
}

/**
 * What has to be remembered of files that go: where each ended, and what they remembered of chains that are still here. Of what
 * can't be read nothing can be remembered, so it does not go; what another process has removed meanwhile is remembered there.
 */
export function lastWords(going: AuditFile[], all: AuditFile[]): { files: AuditFile[]; heads: ChainHead[] } {
  const read = going.flatMap((file) => {
    const rows = rowsOfKind(file.path, 'pruned')
    return rows === undefined ? [] : [{ file, rows }]
  })
  const files = read.map(({ file }) => file)
  const left = new Set(all.filter((file) => !files.includes(file)).map(({ chain }) => chain))
  const heads = read.flatMap(({ file, rows }) => {
    const inherited = rows.flatMap((row) => (row.kind === 'pruned' ? row.heads : []))
    return [...inherited.filter(({ chain }) => left.has(chain)), ...[headOf(file.path) ?? []].flat()]
  })
  return { files, heads }
}
