const QUOTE = 0x22
const BACKSLASH = 0x5c
const MAX_DEPTH = 64
const WALK_BYTES = 32
/** Eight megabytes of `{},{},…` would become hundreds of megabytes of objects. */
const MAX_NODES = 1_000_000

const IGNORED = 0
const OPEN = 1
const CLOSE = 2
const SEPARATOR = 3
const STRING = 4

const KIND = new Uint8Array(256)
KIND[0x7b] = OPEN
KIND[0x5b] = OPEN
KIND[0x7d] = CLOSE
KIND[0x5d] = CLOSE
KIND[0x2c] = SEPARATOR
KIND[QUOTE] = STRING

/**
 * JSON.parse for bytes written by an attacker: bounds depth and number of values before it builds any (JSON.parse itself takes
 * millions of levels, and code that recurses into the result overflows its stack), and drops `__proto__` keys. Throws SyntaxError.
 */
export function parseHostileJson(bytes: Buffer): unknown {
  checkShape(bytes)
  const text = bytes.toString('utf8')
  return mayHideProto(text) ? JSON.parse(text, withoutProto) : JSON.parse(text)
}

/** For a parser that is not ours: the same JSON, within the same bounds and without these keys. */
export function harmlessJson(bytes: Buffer): Buffer {
  checkShape(bytes)
  const text = bytes.toString('utf8')
  return mayHideProto(text) ? Buffer.from(JSON.stringify(JSON.parse(text, withoutProto))) : bytes
}

/** A letter of the key can hide behind an escape that no honest writer uses; both are rare enough to pay for the slow way. */
function mayHideProto(text: string): boolean {
  return text.includes('__proto__') || /\\u00[567]/.test(text)
}

function withoutProto(key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value
}

function checkShape(bytes: Buffer): void {
  let depth = 0
  let nodes = 0
  for (let at = 0; at < bytes.length; at++) {
    const kind = KIND[bytes[at] ?? 0]
    if (kind === IGNORED) continue
    if (kind === STRING) {
      at = endOfString(bytes, at)
      continue
    }
    if (kind === OPEN && ++depth > MAX_DEPTH) throw new SyntaxError(`JSON is nested deeper than ${MAX_DEPTH} levels`)
    if (kind === CLOSE) depth--
    else if (++nodes > MAX_NODES) throw new SyntaxError(`JSON has more than ${MAX_NODES} values`)
  }
}

/** Position of the closing quote. Short strings are walked, in long ones the walk jumps natively from quote to quote. */
function endOfString(bytes: Buffer, open: number): number {
  let at = open + 1
  for (;;) {
    const walkEnd = Math.min(bytes.length, at + WALK_BYTES)
    while (at < walkEnd) {
      const byte = bytes[at]
      if (byte === QUOTE) return at
      at += byte === BACKSLASH ? 2 : 1
    }
    const quote = bytes.indexOf(QUOTE, at)
    if (quote === -1) return bytes.length
    let backslashes = 0
    while (quote - 1 - backslashes >= at && bytes[quote - 1 - backslashes] === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return quote
    at = quote + 1
  }
}
