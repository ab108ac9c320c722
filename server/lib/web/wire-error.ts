import { randomUUID } from 'node:crypto'
import { isAppError } from '../errors.ts'
import type { Logger } from '../logger.ts'

export interface WireError {
  code: string
  message: string
  /** Present when the same request may succeed later. */
  retryAfterSeconds?: number
  /** Tells errors with the same code apart. */
  reason?: string
}

/** An error as a client may see it: ours as they are, any other as an id to look for in the log. */
export function wireError(error: unknown, logger: Logger): WireError {
  if (isAppError(error)) {
    const { retryAfterSeconds, reason } = error.details
    const { code, message } = error
    return {
      code,
      message,
      ...(typeof retryAfterSeconds === 'number' && { retryAfterSeconds }),
      ...(typeof reason === 'string' && { reason })
    }
  }
  const id = randomUUID()
  logger.error({ err: error, id }, 'Unexpected error.')
  return { code: 'internal', message: `Something went wrong inside (${id}); the log has the details.` }
}
