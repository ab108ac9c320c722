/** An event has at most 1 MB; what a tool returned may have more. */
const MAX_CHARS = 700_000
const MAX_PARTS = 200

/** The content as the log keeps it: long texts lose their middle, what else does not fit is named and left out. */
export function boundContent(content: readonly unknown[]): unknown[] {
  if (content.length <= MAX_PARTS && sizeOf(content) <= MAX_CHARS) return [...content]
  let room = MAX_CHARS
  const kept = content.slice(0, MAX_PARTS).map((part) => {
    const size = sizeOf(part)
    if (size <= room) {
      room -= size
      return part
    }
    const text = shortened(part, room)
    room -= sizeOf(text)
    return { type: 'text', text }
  })
  const left = content.length - kept.length
  return left > 0 ? [...kept, { type: 'text', text: `[${left} more parts left out]` }] : kept
}

function shortened(part: unknown, room: number): string {
  const { type, text } = part as { type?: unknown; text?: unknown }
  if (typeof text !== 'string')
    return `[${String(type ?? 'content').slice(0, 40)} of ${sizeOf(part)} characters left out]`
  // A character can take six in JSON.
  const half = Math.floor(Math.max(0, room - 1000) / 12)
  return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters left out …]\n${half > 0 ? text.slice(-half) : ''}`
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0
}
