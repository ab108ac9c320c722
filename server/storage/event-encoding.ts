/**
 * The stored form of an event: one JSON text without its seq and time, and its large fields apart from it. Both adapters share these
 * limits.
 */
import { AppError } from '../lib/errors.ts'
import type { NewEvent, ReadOptions, StoredEvent } from './event-log.ts'
import { bytesOf, type LargeField, MIN_LARGE_BYTES, putBack, takeOut } from './large-values.ts'

/** Without the large fields. */
const MAX_BODY_BYTES = 1024 * 1024
const MAX_EVENT_BYTES = 24 * MAX_BODY_BYTES
const MAX_APPEND_BYTES = 2 * MAX_EVENT_BYTES
const MAX_APPEND_EVENTS = 1000
const DEFAULT_READ_LIMIT = 1000
const MAX_READ_LIMIT = 10_000
/** A page ends when it has this many bytes: one conversation must not keep the store busy while all others wait. */
export const PAGE_BYTES = 4 * 1024 * 1024
/** How many events are read between two checks of that limit. */
export const READ_BATCH = 8

export interface EncodedEvents {
  bodies: string[]
  /** Large fields as JSON, by their hash. */
  large: Map<string, string>
}

export function encodeEvents(events: NewEvent[]): EncodedEvents {
  if (events.length > MAX_APPEND_EVENTS) throw tooMany(`${events.length} events`)
  const large = new Map<string, string>()
  let total = 0
  const bodies = events.map((event) => {
    const { body, bytes } = encode(event, large)
    total += bytes
    if (total > MAX_APPEND_BYTES) throw tooMany(`more than ${MAX_APPEND_BYTES} bytes`)
    return body
  })
  return { bodies, large }
}

function encode({ type, data }: NewEvent, stored: Map<string, string>): { body: string; bytes: number } {
  const whole = JSON.stringify({ type, data })
  const bytes = Buffer.byteLength(whole)
  if (bytes < MIN_LARGE_BYTES) return { body: whole, bytes }
  if (bytes > MAX_EVENT_BYTES) throw tooLarge(type, bytes)
  const { rest, large } = takeOut(JSON.parse(whole).data, stored)
  const body = large.length === 0 ? whole : JSON.stringify({ type, data: rest, large })
  if (Buffer.byteLength(body) > MAX_BODY_BYTES) throw tooLarge(type, bytes)
  return { body, bytes }
}

const MAX_KEY_CHARS = 300

export function keysOf(events: NewEvent[]): string[] {
  const keys = events.flatMap(({ key }) => (key === undefined ? [] : [key]))
  const long = keys.find((key) => key.length > MAX_KEY_CHARS)
  if (long === undefined) return keys
  throw new AppError('invalid', 'event_key_too_long', `An event's key has at most ${MAX_KEY_CHARS} characters.`)
}

export interface DecodedEvent {
  event: StoredEvent
  /** Large fields that `fill` still has to put back. */
  large: LargeField[]
}

export function decodeEvent(seq: number, at: number, body: string): DecodedEvent {
  const { type, data, large = [] }: NewEvent & { large?: LargeField[] } = JSON.parse(body)
  return { event: { seq, at, type, data }, large }
}

/** The events of a page whose large fields still fit into it, at least one. */
export function fitting(page: DecodedEvent[], bareUntil: number): DecodedEvent[] {
  let bytes = 0
  const end = page.findIndex(({ event, large }, at) => {
    const isOver = at > 0 && bytes > PAGE_BYTES
    if (event.seq > bareUntil) bytes += bytesOf(large)
    return isOver
  })
  return end < 0 ? page : page.slice(0, end)
}

export function hashesOf(page: DecodedEvent[], bareUntil: number): string[] {
  return page.flatMap(({ event, large }) => (event.seq > bareUntil ? large.map(({ hash }) => hash) : []))
}

export function fill(page: DecodedEvent[], stored: ReadonlyMap<string, string>, bareUntil = 0): StoredEvent[] {
  return page.map(({ event, large }) => {
    if (event.seq > bareUntil) putBack(event.data, large, stored)
    return event
  })
}

export function readRange(options: ReadOptions = {}): Required<ReadOptions> {
  const { after = 0, limit = DEFAULT_READ_LIMIT, bareUntil = 0 } = options
  const valid =
    Number.isSafeInteger(after) && after >= 0 && Number.isSafeInteger(limit) && limit > 0 && limit <= MAX_READ_LIMIT
  if (valid) return { after, limit, bareUntil }
  const message = `Read events after a number of 0 or more, with a limit from 1 to ${MAX_READ_LIMIT}.`
  throw new AppError('invalid', 'invalid_range', message)
}

function tooLarge(type: string, bytes: number): AppError {
  const limit = `${MAX_EVENT_BYTES} in all, and ${MAX_BODY_BYTES} without large fields`
  const message = `An event of type ${type.slice(0, 100)} has ${bytes} bytes; the limit is ${limit}.`
  return new AppError('invalid', 'event_too_large', message)
}

function tooMany(what: string): AppError {
  const message = `One append of ${what} is too large; use at most ${MAX_APPEND_EVENTS} events and ${MAX_APPEND_BYTES} bytes.`
  return new AppError('invalid', 'append_too_large', message)
}
