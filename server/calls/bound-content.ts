import { partType } from '../../contract/stored-files.ts'
import { plural } from '../lib/plural.ts'

/** Far above what tools usually return; a server may send twice as much. */
const MAX_BYTES = 8 * 1024 * 1024
const MAX_PARTS = 200

/** The content for the log: long texts lose their middle, and other parts that don't fit are named and left out. */
export function boundContent(content: readonly unknown[]): unknown[] {
  if (content.length <= MAX_PARTS && sizeOf(content) <= MAX_BYTES) return [...content]
  let room = MAX_BYTES
  const kept = content.slice(0, MAX_PARTS).map((part) => {
    const size = sizeOf(part)
    const fitting = size <= room ? part : { type: 'text', text: shortened(part, size, room) }
    room -= Math.min(size, sizeOf(fitting))
    return fitting
  })
  const left = content.length - kept.length
  return left > 0 ? [...kept, { type: 'text', text: `[${plural(left, 'more part')} left out]` }] : kept
}

function shortened(part: unknown, size: number, room: number): string {
  const { text } = (part ?? {}) as { text?: unknown }
  if (typeof text !== 'string') return `[${partType(part)} of ${size} bytes left out]`
  // A character can take six bytes in JSON.
  const half = Math.floor(Math.max(0, room - 1000) / 12)
  const tail = half > 0 ? text.slice(-half) : ''
  return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters left out …]\n${tail}`.toWellFormed()
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '')
}
