import { createLogger } from '../lib/logger.ts'

export type Announce = (sentence: string, fields?: Record<string, unknown>, level?: 'info' | 'warn' | 'error') => void

/** Writes messages for a person to stderr: as text to a terminal, otherwise as JSON lines. */
export function announcer(instance: string, isTerminal = process.stderr.isTTY): Announce {
  if (isTerminal) return (sentence) => void process.stderr.write(`${sentence}\n`)
  const logger = createLogger('info').child({ instance })
  return (sentence, fields = {}, level = 'info') => logger[level](fields, sentence)
}
