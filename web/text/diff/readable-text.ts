/**
 * The text of a file in a comparison that a person approves. A program that runs the file may read it in another way than an editor
 * shows it: a shell skips a byte order mark of UTF-16 and zero bytes, and runs the lines between them. Such a file is shown byte by byte.
 */
import { byteText } from '../files/byte-text.ts'
import { decodeText } from '../files/text-file.ts'

export interface ReadableText {
  text: string
  /** A warning for the person; empty for plain UTF-8. */
  note: string
}

/** A shorter run of letters in UTF-16 is no command. */
const MIN_RUN = 4
const HEAD_BYTES = 64
const MIN_SHARE = 0.7

/** Returns null for a file that is not text in any way. */
export function readableText(bytes: Uint8Array): ReadableText | null {
  const file = decodeText(bytes)
  if (!file)
    return looksLikeText(bytes)
      ? {
          text: byteText(bytes),
          note: 'This is not plain text, but a program may read it as text. It is shown byte by byte.'
        }
      : null
  const { text, encoding } = file
  if (encoding.startsWith('UTF-16') && hasRun(bytes))
    return {
      text: byteText(bytes),
      note: `This file begins like ${encoding}, but a program may read it byte by byte, as it is shown here.`
    }
  return { text, note: encoding === 'UTF-8' ? '' : `This file is encoded as ${encoding}.` }
}

/** The texts of both versions of a file. Null if there is no text to compare. */
export function readableSides(before: Uint8Array, after: Uint8Array): (ReadableText & { before: string }) | null {
  const [old, now] = [readableText(before), readableText(after)]
  if (!now || (!old && after.length === 0)) return null
  const notes = new Set([old?.note ?? 'The version before is not text.', now.note])
  return { before: old?.text ?? '', text: now.text, note: [...notes].filter((note) => note !== '').join(' ') }
}

const isPrintable = (byte: number) => (byte >= 0x20 && byte < 0x7f) || byte === 0x09 || byte === 0x0a || byte === 0x0d

function hasRun(bytes: Uint8Array): boolean {
  let run = 0
  return bytes.some((byte) => {
    run = isPrintable(byte) ? run + 1 : 0
    return run >= MIN_RUN
  })
}

/** Scripts begin with text, whatever follows; other files are text for the most part. */
function looksLikeText(bytes: Uint8Array): boolean {
  const printable = bytes.reduce((sum, byte) => sum + (isPrintable(byte) ? 1 : 0), 0)
  return bytes.subarray(0, HEAD_BYTES).every(isPrintable) || printable >= bytes.length * MIN_SHARE
}
