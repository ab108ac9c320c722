/**
 * The text that a write replaced, for the record of the call. Only the lines that differ from the new text are kept: together with the
 * arguments of the call they give the earlier text back.
 */
export type Replaced =
  /** There was no file. */
  | { is: 'nothing' }
  /** The earlier text is `head` characters of the new one, then `text`, then the last `tail` characters of the new one. */
  | { is: 'text'; head: number; tail: number; text: string }
  /** Not kept: it was not text, or too much of it changed. */
  | { is: 'binary' | 'large'; bytes: number }

/** Maximum size of the kept text, as JSON. An event has at most 1 MB. */
export const MAX_REPLACED_BYTES = 256_000

export function replacedText(before: string, after: string): Extract<Replaced, { is: 'text' }> {
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  // Whole lines only, so that no character is cut in half.
  head = head === 0 ? 0 : before.lastIndexOf('\n', head - 1) + 1
  let tail = 0
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  const lineEnd = tail === 0 ? -1 : before.indexOf('\n', before.length - tail)
  tail = lineEnd < 0 ? 0 : before.length - lineEnd - 1
  return { is: 'text', head, tail, text: before.slice(head, before.length - tail) }
}

/** Undefined if the record does not fit the arguments, which hostile code in the sandbox can bring about. */
export function earlierText(
  { head, tail, text }: Extract<Replaced, { is: 'text' }>,
  after: string
): string | undefined {
  if (head + tail > after.length) return undefined
  return after.slice(0, head) + text + after.slice(after.length - tail)
}
