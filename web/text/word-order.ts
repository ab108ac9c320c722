/**
 * Right-to-left words reverse the order of the text around them: `mv A B` looks like `mv B A`, and `A > B` like `B < A`.
 * When words are isolated from each other, each keeps its direction and the line keeps its order, so that a command looks as it runs.
 */
export interface WordPart {
  text: string
  isRtl: boolean
  /** Shown letter by letter, because the text has too many words to isolate each. */
  isForced?: boolean
}

const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]+/gu
/** Maximum number of parts, because each is an element of the page. A text of several pages has fewer. */
const MAX_APART = 3000

export function wordOrder(text: string): WordPart[] {
  const parts: WordPart[] = []
  let from = 0
  for (const { 0: word, index } of text.matchAll(RTL)) {
    if (parts.length >= MAX_APART) break
    if (index > from) parts.push({ text: text.slice(from, index), isRtl: false })
    parts.push({ text: word, isRtl: true })
    from = index + word.length
  }
  const rest = text.slice(from)
  if (rest !== '') parts.push({ text: rest, isRtl: false, ...(rest.search(RTL) >= 0 ? { isForced: true } : {}) })
  return parts
}
