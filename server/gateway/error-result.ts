import type { Logger } from '../lib/logger.ts'
import { wireError } from '../lib/wire-error.ts'

/** A failed call as a result, because a model reads those. */
export function errorResult(error: unknown, logger: Logger): Record<string, unknown> {
  const { code, message } = wireError(error, logger)
  return { content: [{ type: 'text', text: message }], isError: true, _meta: { 'mcp-orchestrator/error': { code } } }
}
