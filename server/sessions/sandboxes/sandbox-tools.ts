import { WORKSPACE } from '../../../contract/own-sources.ts'
import type { ToolDefinitionInput } from '../../calls/offered-tool.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ReportRefusal } from '../../lib/refusals.ts'
import { isOwnershipError } from './ownership-error.ts'
import type { HeldSession } from './session-manager.ts'

interface Options {
  logger: Logger
  refused?: ReportRefusal
}

/** The tools of the sessions' own sandboxes. All sandboxes of a process run one image, so they share one list. */
export function sandboxTools({ logger, refused }: Options): (hold: HeldSession) => ToolSource {
  let tools: ToolDefinitionInput[] | undefined
  const list = async (hold: HeldSession, signal: AbortSignal) => {
    if (tools) return tools
    try {
      tools = await (await hold.workspace(signal)).listTools()
      return tools
    } catch (error) {
      if (signal.aborted || isOwnershipError(error)) throw error
      // Another sandbox may have listed them meanwhile. A call that needs this sandbox opens it again and reports why it fails.
      if (!tools) {
        refused?.({ face: 'chat', code: isAppError(error) ? error.code : 'internal' })
        throw error
      }
      logger.warn({ err: error }, `The sandbox did not open yet: ${messageOf(error)}`)
      return tools
    }
  }
  return (hold) => ({
    server: WORKSPACE,
    title: 'The sandbox',
    list: ({ signal }) => list(hold, signal),
    call: (input) => hold.runTool(input)
  })
}
