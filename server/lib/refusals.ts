/**
 * The one place where refusals are counted and logged, whichever face made them. A flood of the same refusal is one line; when
 * it is over, another one says in `repeated` how many were left out.
 */
import type { Logger } from './logger.ts'
import { RepeatedLines } from './repeated-lines.ts'

/** `mcp` is the gateway at /mcp, `chat` a turn or a tool call of a session. */
type Face = 'http' | 'socket' | 'mcp' | 'chat'

export interface Refusal {
  face: Face
  code: string
  /** Tells refusals with the same code apart. */
  reason?: string | undefined
  /** Undefined: it is counted, and another line of the log tells of it. */
  line?: {
    sentence: string
    /** Refusals of the same sender are collapsed. Must not be something that the client can choose freely. */
    sender: string
    fields: Record<string, unknown>
  }
}

export type ReportRefusal = (refusal: Refusal) => void

export type CountRefusal = (face: Face, code: string, reason?: string) => void

export function createRefusals(logger: Logger, count: CountRefusal): ReportRefusal {
  const lines = new RepeatedLines()
  return ({ face, code, reason, line }) => {
    count(face, code, reason)
    if (!line) return
    const { sentence, sender, fields } = line
    lines.take([face, code, reason, sentence, sender].join(' '), (skipped, lastAt) => {
      const counted = skipped > 0 ? { repeated: skipped, ...(lastAt && { lastAt }) } : {}
      logger.info({ ...fields, face, code, reason, ...counted }, sentence)
    })
  }
}
