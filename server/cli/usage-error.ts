import { AppError } from '../lib/errors.ts'

/** The command was called in a wrong way; `command` adds where its help is. */
export function usageError(message: string, command?: string): AppError {
  const help = command === undefined ? '' : `. See mcp-orchestrator ${command} --help.`
  return new AppError('invalid', 'usage', message + help)
}
