/** The stored form of an event: one JSON text without its seq and time. Both adapters share these limits. */
import { AppError } from '../lib/errors.ts'
import type { NewEvent, StoredEvent } from './event-log.ts'

const MAX_EVENT_BYTES = 1024 * 1024
const MAX_APPEND_BYTES = 16 * MAX_EVENT_BYTES
const MAX_APPEND_EVENTS = 1000
const DEFAULT_READ_LIMIT = 1000
const MAX_READ_LIMIT = 10_000
/** A page ends when it has this many bytes: one conversation must not keep the store busy while all others wait. */
export const PAGE_BYTES = 4 * 1024 * 1024
/** How many events are read between two checks of that limit. */
export const READ_BATCH = 8

export function encodeEvents(events: NewEvent[]): string[] {
  if (events.length > MAX_APPEND_EVENTS) throw tooMany(`${events.length} events`)
  let total = 0
  return events.map((event) => {
    const body = JSON.stringify({ type: event.type, data: event.data })
    const bytes = Buffer.byteLength(body)
    if (bytes > MAX_EVENT_BYTES) throw tooLarge(event.type, bytes)
    total += bytes
    if (total > MAX_APPEND_BYTES) throw tooMany(`more than ${MAX_APPEND_BYTES} bytes`)
    return body
  })
}

const MAX_KEY_CHARS = 300

export function keysOf(events: NewEvent[]): string[] {
  const keys = events.flatMap(({ key }) => (key === undefined ? [] : [key]))
  const long = keys.find((key) => key.length > MAX_KEY_CHARS)
  if (long === undefined) return keys
  throw new AppError('invalid', 'event_key_too_long', `An event's key has at most ${MAX_KEY_CHARS} characters.`)
}

export function decodeEvent(seq: number, at: number, body: string): StoredEvent {
  const { type, data }: NewEvent = JSON.parse(body)
  return { seq, at, type, data }
}

export function readRange(options: { after?: number; limit?: number } = {}): { after: number; limit: number } {
  const { after = 0, limit = DEFAULT_READ_LIMIT } = options
  const valid =
    Number.isSafeInteger(after) && after >= 0 && Number.isSafeInteger(limit) && limit > 0 && limit <= MAX_READ_LIMIT
  if (valid) return { after, limit }
  const message = `Read events after a number of 0 or more, with a limit from 1 to ${MAX_READ_LIMIT}.`
  throw new AppError('invalid', 'invalid_range', message)
}

function tooLarge(type: string, bytes: number): AppError {
  const message = `An event of type ${type.slice(0, 100)} has ${bytes} bytes; the limit is ${MAX_EVENT_BYTES}.`
  return new AppError('invalid', 'event_too_large', message)
}

function tooMany(what: string): AppError {
  const message = `One append of ${what} is too large; use at most ${MAX_APPEND_EVENTS} events and ${MAX_APPEND_BYTES} bytes.`
  return new AppError('invalid', 'append_too_large', message)
}
