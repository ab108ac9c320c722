import type { OutputChunk } from '../../../../workspace-server/protocol.ts'
import { isRecord } from '../../../lib/is-record.ts'

const MAX_MESSAGE_CHARS = 1024 * 1024

/** Reads live output of a command from a progress notification's message; returns null for anything else. */
export function readOutputChunk(message: unknown): OutputChunk | null {
  if (typeof message !== 'string' || message.length > MAX_MESSAGE_CHARS) return null
  let value: unknown
  try {
    value = JSON.parse(message)
  } catch {
    return null
  }
  if (!isRecord(value) || typeof value.text !== 'string') return null
  const { stream, text } = value
  return stream === 'stdout' || stream === 'stderr' ? { stream, text } : null
}
