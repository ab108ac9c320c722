import type { Logger } from '../lib/logger.ts'
import type { ReportRefusal } from '../lib/refusals.ts'
import { wireError } from '../lib/web/wire-error.ts'

export interface ErrorReport {
  logger: Logger
  /** Called for every call that is answered with one of our errors. */
  refused?: ReportRefusal | undefined
}

/** Turns a failed call into a result, because models read results. */
export function errorResult(error: unknown, { logger, refused }: ErrorReport, tool: string): Record<string, unknown> {
  const { code, message } = wireError(error, logger)
  const fields = { route: '/mcp', tool: tool.slice(0, 100) }
  // Grouped by code alone: the client chooses the tool's name.
  refused?.({ face: 'mcp', code, line: { sentence: 'Gateway call failed.', sender: '', fields } })
  return { content: [{ type: 'text', text: message }], isError: true, _meta: { 'mcp-orchestrator/error': { code } } }
}
