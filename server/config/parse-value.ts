import { isIP } from 'node:net'
import { AppError } from '../lib/errors.ts'
import { type UidRange, uidCount } from '../sandbox/uid-range.ts'

/** Parses the text of a setting, or throws an error that names the setting. */
export type ParseValue<T> = (text: string, name: string) => T

function invalidSetting(name: string, wanted: string, text: string): AppError {
  return new AppError('invalid', 'invalid_setting', `${name} must be ${wanted}, not "${text.slice(0, 80)}".`)
}

export const text: ParseValue<string> = (value) => value

export function wholeNumber(min: number, max: number): ParseValue<number> {
  return (value, name) => {
    const number = Number(value)
    if (/^\d+$/.test(value) && number >= min && number <= max) return number
    throw invalidSetting(name, `a whole number from ${min} to ${max}`, value)
  }
}

export function decimal(min: number, max: number): ParseValue<number> {
  return (value, name) => {
    const number = Number(value)
    if (/^\d+(\.\d+)?$/.test(value) && number >= min && number <= max) return number
    throw invalidSetting(name, `a number from ${min} to ${max}`, value)
  }
}

export function oneOf<const T extends string>(...choices: T[]): ParseValue<T> {
  return (value, name) => {
    const found = choices.find((choice) => choice === value)
    if (found) return found
    throw invalidSetting(name, `one of ${choices.join(', ')}`, value)
  }
}

export function url(...protocols: string[]): ParseValue<string> {
  return (value, name) => {
    const parsed = URL.canParse(value) ? new URL(value) : undefined
    if (parsed && protocols.includes(parsed.protocol)) return value.replace(/\/+$/, '')
    // Don't repeat the value: a URL may contain a password.
    throw new AppError(
      'invalid',
      'invalid_setting',
      `${name} must be a URL that begins with ${protocols.join('// or ')}//.`
    )
  }
}

/** A list of addresses and CIDR ranges; `loopback` is this machine. */
export const addressRanges: ParseValue<readonly string[]> = (value, name) => {
  const ranges = value.split(',').map((range) => range.trim())
  if (ranges.every((range) => range === 'loopback' || isRange(range))) {
    return ranges.flatMap((range) => (range === 'loopback' ? ['127.0.0.0/8', '::1'] : [range]))
  }
  throw invalidSetting(name, 'addresses or CIDR ranges separated by commas, or loopback', value)
}

/** Sites as browsers name them, such as `http://localhost:5173`, separated by commas. */
export const origins: ParseValue<readonly string[]> = (value, name) => {
  const all = value.split(',').map((one) => one.trim())
  if (all.every((one) => URL.canParse(one) && new URL(one).origin === one && /^https?:/.test(one))) return all
  throw invalidSetting(name, 'origins such as http://localhost:5173, separated by commas and without a path', value)
}

/** Values that each match the pattern, separated by commas. `wanted` describes them in words. */
export function listOf(pattern: RegExp, wanted: string): ParseValue<string[]> {
  return (value, name) => {
    const all = value.split(',').map((one) => one.trim())
    if (all.every((one) => pattern.test(one))) return all
    throw invalidSetting(name, `${wanted}, separated by commas`, value)
  }
}

const FEWEST_UIDS = 16
/** Each id adds a line to `/etc/passwd` in the image. */
const MOST_UIDS = 10_000
const SMALLEST_UID = 1000
const LARGEST_UID = 2_000_000_000

/** `FIRST-LAST`. */
export const uidRange: ParseValue<UidRange> = (value, name) => {
  const [, from, to] = /^(\d{1,10})-(\d{1,10})$/.exec(value) ?? []
  const range = { first: Number(from), last: Number(to) }
  const count = uidCount(range)
  const isInside = range.first >= SMALLEST_UID && range.last <= LARGEST_UID
  if (isInside && count >= FEWEST_UIDS && count <= MOST_UIDS) return range
  const wanted = `${FEWEST_UIDS} to ${MOST_UIDS} user ids from ${SMALLEST_UID} on, as FIRST-LAST`
  throw invalidSetting(name, wanted, value)
}

function isRange(text: string): boolean {
  const [, address = '', prefix] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIP(address)
  return family !== 0 && (prefix === undefined || Number(prefix) <= (family === 4 ? 32 : 128))
}

/** `wanted` describes the pattern in words. */
export function matching(pattern: RegExp, wanted: string): ParseValue<string> {
  return (value, name) => {
    if (pattern.test(value)) return value
    throw invalidSetting(name, wanted, value)
  }
}
