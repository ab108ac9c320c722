/** An invalid member of an entry; `path` is its path within the entry. */
import { isRecord } from '../lib/is-record.ts'
export class EntryProblem extends Error {
  readonly path: string[]
  constructor(path: string[], reason: string) {
    super(reason)
    this.name = 'EntryProblem'
    this.path = path
  }

  /** Begins with the member that is wrong. */
  get sentence(): string {
    return `${this.path.length > 0 ? `"${this.path.join('.')}" ` : ''}${this.message}`
  }
}

type Raw = Record<string, unknown>

const MAX_TEXT = 10_000
const MAX_ITEMS = 1000

export type Read<T> = (value: unknown, path: string[]) => T

export function required<T>(raw: Raw, key: string, read: Read<T>): T {
  return read(raw[key], [key])
}

export function optional<T>(raw: Raw, key: string, read: Read<T>): T | undefined {
  return raw[key] === undefined || raw[key] === null ? undefined : read(raw[key], [key])
}

export function text(value: unknown, path: string[]): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= MAX_TEXT && !value.includes('\0')) return value
  throw new EntryProblem(path, `must be a text of 1 to ${MAX_TEXT} characters`)
}

export function texts(value: unknown, path: string[]): string[] {
  if (!Array.isArray(value) || value.length > MAX_ITEMS) throw new EntryProblem(path, 'must be a list of texts')
  // An empty string is a valid argument.
  return value.map((item, index) => (item === '' ? '' : text(item, [...path, String(index)])))
}

export function textMap(value: unknown, path: string[]): Record<string, string> {
  if (!isRecord(value)) throw new EntryProblem(path, 'must be an object of texts')
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const scalar = typeof item === 'number' || typeof item === 'boolean' ? String(item) : item
      return [key, scalar === '' ? '' : text(scalar, [...path, key])]
    })
  )
}

export function number(min: number, max: number): Read<number> {
  return (value, path) => {
    if (typeof value === 'number' && value >= min && value <= max) return value
    throw new EntryProblem(path, `must be a number from ${min} to ${max}`)
  }
}

export function flag(value: unknown, path: string[]): boolean {
  if (typeof value === 'boolean') return value
  throw new EntryProblem(path, 'must be true or false')
}

export function onlyKeys(value: Raw, known: string[], path: string[]): void {
  const odd = Object.keys(value).find((key) => !known.includes(key))
  if (odd !== undefined) throw new EntryProblem([...path, odd], `is unknown; valid keys are ${known.join(', ')}`)
}
