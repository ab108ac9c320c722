/** The tools of a chat: those of the session's own sandbox and of every enabled server. One that fails to answer hides no other. */

import type { CallEntry } from '../../contract/transcript.ts'
import type { OutputChunk } from '../../workspace-server/protocol.ts'
import { withDeadline } from '../lib/deadline.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import {
  approvalHash,
  type OfferedTool,
  offerTools,
  type ToolDefinitionInput,
  WORKSPACE
} from '../tools/offered-tool.ts'
import type { ToolSource } from '../tools/tool-source.ts'
import type { Hold } from './session-manager.ts'

const LIST_MS = 10_000

export interface ToolboxOptions {
  sources: () => ToolSource[]
  logger: Logger
}

export class Toolbox {
  readonly #options: ToolboxOptions
  /** The same for every sandbox of this process: it is one image. */
  #workspaceTools: ToolDefinitionInput[] | undefined

  constructor(options: ToolboxOptions) {
    this.#options = options
  }

  async offer(hold: Hold, signal: AbortSignal): Promise<OfferedTool[]> {
    const taken = new Set<string>()
    const offered = offerTools(WORKSPACE, await this.#ofSandbox(hold, signal), taken)
    const lists = await Promise.all(
      this.#options.sources().map(async (source) => ({ source, tools: await this.#ofServer(source, signal) }))
    )
    for (const { source, tools } of lists) offered.push(...offerTools(source.server, tools, taken))
    return offered
  }

  /** Runs what was approved, and only that: another definition or other arguments than the human saw are refused. */
  async run(
    hold: Hold,
    input: { sessionId: string; call: CallEntry; signal: AbortSignal; onOutput: (chunk: OutputChunk) => void }
  ): Promise<void> {
    const { sessionId, call, signal, onOutput } = input
    const { callId, server, name, decision } = call
    if (!decision?.approved) throw new AppError('forbidden', 'not_approved', 'Nobody has approved this call.')
    const tools = await this.offer(hold, signal)
    const tool = tools.find((candidate) => candidate.server === server && candidate.name === name)
    if (!tool) throw new AppError('not-found', 'tool_gone', `${server} no longer offers ${name}.`)
    if (approvalHash({ sessionId, callId, definition: tool.definition, args: call.args }) !== call.hash) {
      throw new AppError(
        'conflict',
        'definition_changed',
        `${server}/${name} is not the tool that was approved: it has changed since.`
      )
    }
    const args = decision.editedArgs ?? call.args
    if (server === WORKSPACE) {
      const workspace = await hold.workspace(signal)
      await workspace.runTool({ callId, name, args, signal, onOutput })
      return
    }
    const source = this.#options.sources().find((candidate) => candidate.server === server)
    if (!source) throw new AppError('not-found', 'tool_gone', `The server ${server} is no longer enabled.`)
    await hold.journal(callId, () => source.call({ callId, name, args, signal, onOutput }))
  }

  async #ofSandbox(hold: Hold, signal: AbortSignal): Promise<ToolDefinitionInput[]> {
    try {
      this.#workspaceTools ??= await (await hold.workspace(signal)).listTools()
      return this.#workspaceTools
    } catch (error) {
      if (signal.aborted) throw error
      this.#options.logger.warn({ err: error }, `No sandbox for this turn: ${messageOf(error)}`)
      return []
    }
  }

  async #ofServer(source: ToolSource, signal: AbortSignal): Promise<ToolDefinitionInput[]> {
    try {
      return await withDeadline({ what: `${source.server} to list its tools`, ms: LIST_MS, signal }, (inner) =>
        source.list(inner)
      )
    } catch (error) {
      if (signal.aborted) throw error
      this.#options.logger.warn({ server: source.server }, `Left out of this turn: ${messageOf(error)}`)
      return []
    }
  }
}
