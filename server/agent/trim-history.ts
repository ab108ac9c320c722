import type { ChatMessage } from '../models/port.ts'

/** Rough, and on the safe side for English and code: no tokenizer is right for every provider. */
const CHARS_PER_TOKEN = 3.5
const SHORT_ANSWER_CHARS = 2000

export interface TrimmedHistory {
  messages: ChatMessage[]
  /** How many messages were dropped from the start. */
  dropped: number
}

/**
 * Drops the oldest exchanges until the rest fits. An exchange begins with a user's message and goes whole, so that no call is
 * parted from its answer. The last one always stays; if it alone is too long, its older tool answers are shortened.
 */
export function trimHistory(messages: ChatMessage[], maxTokens: number): TrimmedHistory {
  const exchanges = splitExchanges(messages)
  let total = estimateTokens(messages)
  let first = 0
  while (first < exchanges.length - 1 && total > maxTokens) {
    total -= estimateTokens(exchanges[first] ?? [])
    first += 1
  }
  const kept = exchanges.slice(first).flat()
  const dropped = messages.length - kept.length
  return { messages: total > maxTokens ? shortenAnswers(kept, maxTokens) : kept, dropped }
}

export function estimateTokens(messages: ChatMessage[]): number {
  return messages.reduce((sum, message) => sum + Math.ceil(lengthOf(message) / CHARS_PER_TOKEN) + 4, 0)
}

function lengthOf(message: ChatMessage): number {
  if (message.role === 'user') return message.text.length
  if (message.role === 'tool') return message.answers.reduce((sum, { text }) => sum + text.length + 50, 0)
  return message.parts.reduce(
    (sum, part) => sum + (part.type === 'tool-call' ? part.args.length + 50 : part.text.length),
    0
  )
}

function splitExchanges(messages: ChatMessage[]): ChatMessage[][] {
  const exchanges: ChatMessage[][] = []
  for (const message of messages) {
    if (message.role === 'user' || exchanges.length === 0) exchanges.push([message])
    else exchanges.at(-1)?.push(message)
  }
  return exchanges
}

function shortenAnswers(messages: ChatMessage[], maxTokens: number): ChatMessage[] {
  const result = [...messages]
  for (let at = 0; at < result.length && estimateTokens(result) > maxTokens; at++) {
    const message = result[at]
    if (message?.role !== 'tool') continue
    const answers = message.answers.map((answer) => ({ ...answer, text: cut(answer.text) }))
    result[at] = { ...message, answers }
  }
  return result
}

function cut(text: string): string {
  if (text.length <= SHORT_ANSWER_CHARS) return text
  return `${text.slice(0, SHORT_ANSWER_CHARS)}\n[… ${text.length - SHORT_ANSWER_CHARS} characters left out to save room]`
}
