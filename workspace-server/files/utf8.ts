const CONTINUATION_MASK = 0xc0
const CONTINUATION = 0x80

/** The longest part of `bytes`, from the start, that does not end inside a UTF-8 character. */
export function wholeCharactersFromStart(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if ((byte & CONTINUATION_MASK) === CONTINUATION) continue
    return sequenceLength(byte) > back ? bytes.subarray(0, bytes.length - back) : bytes
  }
  return bytes
}

/** `bytes` without an incomplete character at its start. */
export function wholeCharactersToEnd(bytes: Buffer): Buffer {
  let skip = 0
  while (skip < Math.min(3, bytes.length) && ((bytes[skip] ?? 0) & CONTINUATION_MASK) === CONTINUATION) skip++
  return bytes.subarray(skip)
}

function sequenceLength(first: number): number {
  if (first >= 0xf0) return 4
  if (first >= 0xe0) return 3
  return first >= 0xc0 ? 2 : 1
}
