import { isRecord } from './is-record.ts'

/** A copy in which every text, also the names of members, was redacted. */
export function redactTexts(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value)
  if (Array.isArray(value)) return value.map((each) => redactTexts(each, redact))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [redact(key), redactTexts(each, redact)]))
}
