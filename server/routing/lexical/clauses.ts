/** Splits a long request into what it asks for and what is background. */

const MAX_CLAUSES = 8
const MIN_LENGTH = 9
const BREAK =
  /(?<![.?!;\n])[.?!;\n]+\s|,\s+(?:and|then|but|also)\s|\b(?:and then|additionally|furthermore|moreover|finally|also|then|and also)\b/i
const ASKS = new RegExp(
  [
    '\\?',
    '\\b(?:can|could|would|will) (?:you|i|we)\\b',
    '\\bplease\\b',
    "\\b(?:i|we)(?:'d| would)? (?:need|want|like|also)\\b",
    '^(?:\\W|and|then|also)*(?:get|give|show|find|search|list|provide|tell|create|make|add|send|fetch|retrieve|check|help|what|which|who|where|when|how|include|update|delete|remove|convert|translate|calculate|generate)\\b'
  ].join('|'),
  'i'
)

export interface Clause {
  text: string
  /** Whether it asks for something; otherwise it is background ("I am planning a party"). */
  asks: boolean
}

/** Empty if the request is a single clause. */
export function clausesOf(text: string): Clause[] {
  const parts = text
    .split(BREAK)
    .map((part) => part.trim())
    .filter((part) => part.length >= MIN_LENGTH)
  if (parts.length < 2) return []
  return parts.slice(0, MAX_CLAUSES).map((part) => ({ text: part, asks: ASKS.test(part) }))
}
