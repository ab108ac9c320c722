/** A text file that is edited keeps its encoding, its byte order mark and its line ends. */
const ENCODINGS = ['UTF-8', 'UTF-8 with BOM', 'UTF-16 LE', 'UTF-16 BE', 'Windows-1252'] as const
type Encoding = (typeof ENCODINGS)[number]

export interface TextFile {
  /** With the line ends of the file. */
  text: string
  encoding: Encoding
}

/** The first bytes of a PNG. A damaged PNG may have no other byte that can't be in text. */
const PNG = [0x89, 0x50, 0x4e, 0x47]

/** Returns null for a binary file. */
export function decodeText(bytes: Uint8Array): TextFile | null {
  const [first, second, third] = bytes
  if (first === 0xff && second === 0xfe) return { text: decoded('utf-16le', bytes), encoding: 'UTF-16 LE' }
  if (first === 0xfe && second === 0xff) return { text: decoded('utf-16be', bytes), encoding: 'UTF-16 BE' }
  if (bytes.includes(0) || PNG.every((byte, at) => bytes[at] === byte)) return null
  const hasMark = first === 0xef && second === 0xbb && third === 0xbf
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { text, encoding: hasMark ? 'UTF-8 with BOM' : 'UTF-8' }
  } catch {
    return isBinary(bytes) ? null : { text: decoded('windows-1252', bytes), encoding: 'Windows-1252' }
  }
}

/** Every sequence of bytes is valid Windows-1252, so look for bytes that text in it does not have: control characters and gaps. */
function isBinary(bytes: Uint8Array): boolean {
  return bytes.some((byte) => (byte < 0x20 && !TEXT_CONTROLS.has(byte)) || byte === 0x7f || GAPS.has(byte))
}
/** Backspace, tab, line feed, form feed, carriage return and escape, which logs of terminals have. */
const TEXT_CONTROLS = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d, 0x1b])
const GAPS = new Set([0x81, 0x8d, 0x8f, 0x90, 0x9d])

const decoded = (encoding: string, bytes: Uint8Array) => new TextDecoder(encoding).decode(bytes)

/** Throws an Error with a sentence if the encoding lacks a character. */
export function encodeText(text: string, encoding: Encoding): Uint8Array<ArrayBuffer> {
  if (encoding === 'UTF-8') return new TextEncoder().encode(text)
  if (encoding === 'UTF-8 with BOM') return new TextEncoder().encode(`\ufeff${text}`)
  if (encoding === 'Windows-1252') return encodeBytes(text)
  const bytes = new Uint8Array(2 + 2 * text.length)
  const view = new DataView(bytes.buffer)
  const isLittle = encoding === 'UTF-16 LE'
  view.setUint16(0, 0xfeff, isLittle)
  for (let at = 0; at < text.length; at++) view.setUint16(2 + 2 * at, text.charCodeAt(at), isLittle)
  return bytes
}

function encodeBytes(text: string): Uint8Array<ArrayBuffer> {
  const all = decoded(
    'windows-1252',
    Uint8Array.from({ length: 256 }, (_, at) => at)
  )
  const byteOf = new Map([...all].map((character, at) => [character, at]))
  return Uint8Array.from([...text], (character) => {
    const byte = byteOf.get(character)
    if (byte === undefined) throw new Error(`This file is encoded as Windows-1252, which has no “${character}”.`)
    return byte
  })
}

/** As a text field shows it. */
export const withPlainEnds = (text: string) => text.replace(/\r\n?/g, '\n')

/** The line ends of an edited text as they were in the original: of each line if they differ, otherwise as most are. */
export function withLineEnds(edited: string, original: string): string {
  const before = original.split(/(?<=\r\n|\n|\r(?!\n))/)
  if (endOf(before.at(-1) ?? '') !== '') before.push('')
  const after = edited.split('\n')
  const plain = before.map((line) => line.slice(0, line.length - endOf(line).length))
  const usual = usualEnd(before)
  let head = 0
  while (head < Math.min(plain.length, after.length) && plain[head] === after[head]) head++
  let tail = 0
  const most = Math.min(plain.length, after.length) - head
  while (tail < most && plain.at(-1 - tail) === after.at(-1 - tail)) tail++
  let end = ''
  return after.reduce((text, line, at) => {
    if (at === after.length - 1) return text + line
    const isKept = at < head || at >= after.length - tail
    const known = isKept ? before[at < head ? at : before.length - after.length + at] : undefined
    const next = endOf(known ?? '') || usual
    // Next to each other, these two characters would be one line end.
    end = line === '' && end === '\r' && next === '\n' ? '\r' : next
    return text + line + end
  }, '')
}

const endOf = (line: string) => /(?:\r\n|\n|\r)$/.exec(line)?.[0] ?? ''

function usualEnd(lines: string[]): string {
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(endOf(line), (counts.get(endOf(line)) ?? 0) + 1)
  counts.delete('')
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? '\n'
}

/** "UTF-8 with BOM, Windows line ends"; empty for what is usual. */
export function textFileWords({ text, encoding }: TextFile): string {
  const ends = new Set(text.match(/\r\n|\n|\r/g))
  const words: string[] = encoding === 'UTF-8' ? [] : [encoding]
  if (ends.size > 1) words.push('mixed line ends')
  else if (ends.has('\r\n')) words.push('Windows line ends')
  else if (ends.has('\r')) words.push('old Mac line ends')
  return words.join(', ')
}
