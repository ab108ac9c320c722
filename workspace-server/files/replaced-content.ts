import { isUtf8 } from 'node:buffer'
import { closeSync, constants, readFileSync } from 'node:fs'
import { MAX_REPLACED_BYTES, type Replaced, replacedText } from '../../contract/replaced-text.ts'
import type { WorkspaceRoot } from './workspace-root.ts'

/** Larger files are not read: comparing them would delay the write. */
const MAX_READ_BYTES = 4 * 1024 * 1024

/** The content that a write of `after` at `place` is about to replace; undefined if it can't be read. */
export function replacedContent(root: WorkspaceRoot, place: string, after: Buffer): Replaced | undefined {
  try {
    const { fd, stats } = root.open(place, constants.O_RDONLY)
    try {
      if (!stats.isFile()) return undefined
      if (stats.size > MAX_READ_BYTES) return { is: 'large', bytes: stats.size }
      const before = readFileSync(fd)
      if (before.includes(0) || !isUtf8(before)) return { is: 'binary', bytes: before.length }
      const kept = replacedText(before.toString(), after.toString())
      const size = Buffer.byteLength(JSON.stringify(kept.text))
      return size > MAX_REPLACED_BYTES ? { is: 'large', bytes: before.length } : kept
    } finally {
      closeSync(fd)
    }
  } catch {
    // The write itself says what is wrong, if anything is.
    return undefined
  }
}
