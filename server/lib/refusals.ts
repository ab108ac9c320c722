/**
 * The one place where refusals are counted and logged, whichever face made them. A flood of the same refusal is one line; when
 * it is over, another one says in `repeated` how many were left out.
 */
import type { Logger } from './logger.ts'
import { RepeatedLines } from './repeated-lines.ts'

/** `mcp` is the gateway at /mcp, `chat` a turn or a tool call of a session. */
export type Face = 'http' | 'socket' | 'mcp' | 'chat'

export interface Refusal {
  face: Face
  code: string
  /** Undefined: it is counted, and another line of the log tells of it. */
  line?: {
    sentence: string
    /** Refusals of the same sender are collapsed. Must not be something that the client can choose freely. */
    sender: string
    fields: Record<string, unknown>
  }
}

export type ReportRefusal = (refusal: Refusal) => void

const SWEEP_MS = 5000

export function createRefusals(logger: Logger, count: (face: Face, code: string) => void): ReportRefusal {
  const lines = new RepeatedLines()
  setInterval(() => lines.sweep(), SWEEP_MS).unref()
  return ({ face, code, line }) => {
    count(face, code)
    if (!line) return
    const { sentence, sender, fields } = line
    const say = (skipped: number) =>
      logger.info({ ...fields, face, code, ...(skipped > 0 ? { repeated: skipped } : {}) }, sentence)
    const { write, skipped } = lines.take([face, code, sentence, sender].join(' '), Date.now(), say)
    if (write) say(skipped)
  }
}
