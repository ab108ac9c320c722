/**
 * Long strings of an event, such as the content of a file that a model writes, are stored beside the log, once per session and
 * content, and together with the first event that has them. The event's own JSON stays small: code that only looks through the log
 * does not read them.
 */
import { createHash } from 'node:crypto'

/** Shorter strings stay in the event. */
export const MIN_LARGE_CHARS = 64 * 1024

export interface LargeValue {
  /** Where it belongs in the event's data. */
  path: (string | number)[]
  hash: string
  /** Of the stored JSON. */
  bytes: number
}

/** Returns the value without its long strings, which are added to `stored` as JSON by their hash. */
export function takeOut(value: unknown, stored: Map<string, string>): { rest: unknown; large: LargeValue[] } {
  const large: LargeValue[] = []
  const walk = (node: unknown, path: LargeValue['path']): unknown => {
    if (typeof node === 'string') return node.length < MIN_LARGE_CHARS ? node : add(node, path)
    if (Array.isArray(node)) return node.map((item, at) => walk(item, [...path, at]))
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([key, item]) => [key, walk(item, [...path, key])]))
  }
  const add = (text: string, path: LargeValue['path']): string => {
    const json = JSON.stringify(text)
    const hash = createHash('sha256').update(json).digest('base64url')
    stored.set(hash, json)
    large.push({ path, hash, bytes: Buffer.byteLength(json) })
    return ''
  }
  return { rest: walk(value, []), large }
}

/** Puts the long strings back, in place. A string that the store no longer has stays empty. */
export function putBack(data: unknown, large: readonly LargeValue[], stored: ReadonlyMap<string, string>): void {
  for (const { path, hash } of large) {
    const json = stored.get(hash)
    const last = path.at(-1)
    if (json === undefined || last === undefined) continue
    const parent = path.slice(0, -1).reduce<unknown>((node, key) => (node as Record<string, unknown>)?.[key], data)
    if (typeof parent === 'object' && parent !== null) (parent as Record<string, unknown>)[last] = JSON.parse(json)
  }
}

export function bytesOf(large: readonly LargeValue[]): number {
  return large.reduce((sum, { bytes }) => sum + bytes, 0)
}
