/** The files in a history: how many tokens each takes, and which are left out first. */
import type { ChatFile, ChatMessage } from '../models/port.ts'

/** Vendors refuse larger requests: Gemini allows 20 MB as base64, Anthropic shrinks what it accepts with more images. */
const MAX_FILES = 20
const MAX_BYTES = 12_000_000
/** Vendors scale a larger image down to about this. */
const MAX_IMAGE_TOKENS = 1600
const PIXELS_PER_TOKEN = 750
/** A PDF's pages are text and image at once. Their number is not known here. */
const MAX_PDF_TOKENS = 50_000
const PDF_BYTES_PER_TOKEN = 25
const LEFT_OUT_TOKENS = 30

export function fileTokens({ mediaType, size, width, height, isLeftOut }: ChatFile): number {
  if (isLeftOut) return LEFT_OUT_TOKENS
  if (mediaType === 'text/plain') return Math.ceil(size / 3.5)
  if (mediaType === 'application/pdf') return Math.min(MAX_PDF_TOKENS, 2000 + Math.ceil(size / PDF_BYTES_PER_TOKEN))
  const pixels = (width ?? Number.POSITIVE_INFINITY) * (height ?? 1)
  return Math.min(MAX_IMAGE_TOKENS, Math.ceil(pixels / PIXELS_PER_TOKEN))
}

/**
 * Leaves out the oldest files until the request is within the vendors' limits and `fits`. The newest message that has files keeps
 * them if only `fits` says no: shorter text may help, and a question about an image needs it.
 */
export function withFewerFiles(messages: ChatMessage[], fits: (messages: ChatMessage[]) => boolean): ChatMessage[] {
  let result = messages
  const newest = messages.findLastIndex((message) => filesOf(message).length > 0)
  if (newest < 0) return result
  for (const [at, message] of messages.entries()) {
    for (const { id } of filesOf(message)) {
      if (isWithinLimits(result) && (at === newest || fits(result))) return result
      result = result.with(at, without(result[at] ?? message, id))
    }
  }
  return result
}

function isWithinLimits(messages: ChatMessage[]): boolean {
  const files = messages.flatMap(filesOf).filter(({ isLeftOut }) => !isLeftOut)
  return files.length <= MAX_FILES && files.reduce((sum, { size }) => sum + size, 0) <= MAX_BYTES
}

function filesOf(message: ChatMessage): ChatFile[] {
  if (message.role === 'user') return message.files ?? []
  return message.role === 'tool' ? message.answers.flatMap(({ files }) => files ?? []) : []
}

function without(message: ChatMessage, id: string): ChatMessage {
  const mark = (files: ChatFile[]) =>
    files.map((file) => (file.id === id ? { ...file, isLeftOut: true as const } : file))
  if (message.role === 'user') return { ...message, ...(message.files && { files: mark(message.files) }) }
  if (message.role !== 'tool') return message
  const answers = message.answers.map((answer) => ({ ...answer, ...(answer.files && { files: mark(answer.files) }) }))
  return { ...message, answers }
}
