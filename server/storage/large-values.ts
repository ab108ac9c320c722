/**
 * Large fields of an event, such as the arguments of a call that writes a file, are stored beside the log, once per session and
 * content, and together with the first event that has them. The event's own JSON stays small: code that only looks through the log
 * does not read them.
 */
import { createHash } from 'node:crypto'

/** Smaller fields stay in the event. */
export const MIN_LARGE_BYTES = 64 * 1024

export interface LargeField {
  field: string
  hash: string
  /** Size of the stored JSON. */
  bytes: number
}

/** Returns the data with null for its large fields, which are added to `stored` as JSON by their hash. */
export function takeOut(
  data: Record<string, unknown>,
  stored: Map<string, string>
): { rest: Record<string, unknown>; large: LargeField[] } {
  const large: LargeField[] = []
  const rest = Object.entries(data).map(([field, value]) => {
    const json = JSON.stringify(value)
    const bytes = Buffer.byteLength(json)
    if (bytes < MIN_LARGE_BYTES) return [field, value] as const
    const hash = createHash('sha256').update(json).digest('base64url')
    stored.set(hash, json)
    large.push({ field, hash, bytes })
    return [field, null] as const
  })
  return { rest: Object.fromEntries(rest), large }
}

/** Puts the large fields back, in place. */
export function putBack(
  data: Record<string, unknown>,
  large: readonly LargeField[],
  stored: ReadonlyMap<string, string>
): void {
  for (const { field, hash } of large) {
    const json = stored.get(hash)
    if (json !== undefined) data[field] = JSON.parse(json)
  }
}

export function bytesOf(large: readonly LargeField[]): number {
  return large.reduce((sum, { bytes }) => sum + bytes, 0)
}
