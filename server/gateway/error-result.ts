import type { Logger } from '../lib/logger.ts'
import type { ReportRefusal } from '../lib/refusals.ts'
import { wireError } from '../lib/web/wire-error.ts'

export interface ErrorReport {
  logger: Logger
  /** Hears of every call that is answered with an error of ours. */
  refused?: ReportRefusal | undefined
}

/** A failed call as a result, because a model reads those. */
export function errorResult(error: unknown, { logger, refused }: ErrorReport, tool: string): Record<string, unknown> {
  const { code, message } = wireError(error, logger)
  const fields = { route: '/mcp', tool: tool.slice(0, 100) }
  // Collapsed by the code alone: the client chooses the name of the tool.
  refused?.({ face: 'mcp', code, line: { sentence: 'Gateway call failed.', sender: '', fields } })
  return { content: [{ type: 'text', text: message }], isError: true, _meta: { 'mcp-orchestrator/error': { code } } }
}
