import { headOf } from '../lib/cut-text.ts'
import type { ChatFile, ChatMessage, ModelTool, StepRequest } from '../models/port.ts'
import { fileTokens, withFewerFiles } from './history-files.ts'

/** A rough estimate that is safe for English and code. No tokenizer fits every provider. */
const CHARS_PER_TOKEN = 3.5
const SHORT_ANSWER_CHARS = 2000

export interface TrimmedHistory {
  messages: ChatMessage[]
  /** Number of messages dropped from the start. */
  dropped: number
}

/**
 * Leaves out old files, then drops the oldest exchanges until the rest fits. An exchange starts with a user's message and is dropped as a whole, so that no
 * call loses its answer. The question and the newest step of the last exchange always stay. If that exchange alone is too long,
 * its older tool answers are shortened, then its oldest steps are dropped, each with its answers.
 */
export function trimHistory(messages: ChatMessage[], maxTokens: number): TrimmedHistory {
  const exchanges = splitExchanges(withFewerFiles(messages, (rest) => estimateTokens(rest) <= maxTokens))
  let total = estimateTokens(exchanges.flat())
  let first = 0
  while (first < exchanges.length - 1 && total > maxTokens) {
    total -= estimateTokens(exchanges[first] ?? [])
    first += 1
  }
  let kept = exchanges.slice(first).flat()
  if (total > maxTokens) kept = dropSteps(shortenAnswers(kept, maxTokens), maxTokens)
  return { messages: kept, dropped: messages.length - kept.length }
}

export function estimateTokens(messages: ChatMessage[]): number {
  return messages.reduce((sum, message) => sum + Math.ceil(lengthOf(message) / CHARS_PER_TOKEN) + 4, 0)
}

/** Includes the tools and the system prompt. */
export function estimateRequest({
  system,
  tools,
  messages
}: Pick<StepRequest, 'system' | 'tools' | 'messages'>): number {
  return estimateTokens(messages) + Math.ceil(system.length / CHARS_PER_TOKEN) + estimateTools(tools)
}

/** Counts only what the model gets of a tool: an offered tool has its whole definition once more. */
export function estimateTools(tools: readonly ModelTool[]): number {
  const sent = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
  return Math.ceil(JSON.stringify(sent).length / CHARS_PER_TOKEN)
}

function lengthOf(message: ChatMessage): number {
  if (message.role === 'user') return message.text.length + (message.note?.length ?? 0) + filesLength(message.files)
  if (message.role === 'tool')
    return message.answers.reduce((sum, { text, files }) => sum + text.length + 50 + filesLength(files), 0)
  return message.parts.reduce(
    (sum, part) => sum + (part.type === 'tool-call' ? part.args.length + 50 : part.text.length) + metaLength(part),
    0
  )
}

function filesLength(files: readonly ChatFile[] = []): number {
  return files.reduce((sum, file) => sum + fileTokens(file) * CHARS_PER_TOKEN, 0)
}

/** Signatures are sent back with every request and can be long. */
function metaLength({ meta }: { meta?: unknown }): number {
  return meta === undefined ? 0 : JSON.stringify(meta).length
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

function dropSteps(messages: ChatMessage[], maxTokens: number): ChatMessage[] {
  const question = messages.filter(({ role }, at) => at === 0 && role === 'user')
  const steps: ChatMessage[][] = []
  for (const message of messages.slice(question.length)) {
    if (message.role === 'tool') steps.at(-1)?.push(message)
    else steps.push([message])
  }
  while (steps.length > 1 && estimateTokens([...question, ...steps.flat()]) > maxTokens) steps.shift()
  return [...question, ...steps.flat()]
}

function cut(text: string): string {
  if (text.length <= SHORT_ANSWER_CHARS) return text
  return `${headOf(text, SHORT_ANSWER_CHARS)}\n[… ${text.length - SHORT_ANSWER_CHARS} characters left out to save space]`
}
