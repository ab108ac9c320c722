import { type ToolDefinitionInput, WORKSPACE } from '../../calls/offered-tool.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ReportRefusal } from '../../lib/refusals.ts'
import { isOwnershipError } from './ownership-error.ts'
import type { HeldSession } from './session-manager.ts'

/** The tools of the sessions' own sandboxes. All sandboxes of a process run one image, so they share one list. */
export class SandboxTools {
  readonly #options: { logger: Logger; refused?: ReportRefusal }
  #tools: ToolDefinitionInput[] | undefined

  constructor(options: { logger: Logger; refused?: ReportRefusal }) {
    this.#options = options
  }

  source(hold: HeldSession): ToolSource {
    return {
      server: WORKSPACE,
      title: 'The sandbox',
      list: ({ signal }) => this.#list(hold, signal),
      call: (input) => hold.runTool(input)
    }
  }

  async #list(hold: HeldSession, signal: AbortSignal): Promise<ToolDefinitionInput[]> {
    if (this.#tools) return this.#tools
    try {
      this.#tools = await (await hold.workspace(signal)).listTools()
    } catch (error) {
      if (signal.aborted || isOwnershipError(error)) throw error
      const { logger, refused } = this.#options
      // Another sandbox may have listed them meanwhile. A call that needs this sandbox opens it again and reports why it fails.
      if (!this.#tools) {
        refused?.({ face: 'chat', code: isAppError(error) ? error.code : 'internal' })
        throw error
      }
      logger.warn({ err: error }, `The sandbox did not open yet: ${messageOf(error)}`)
    }
    return this.#tools
  }
}
