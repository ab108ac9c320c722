/** The tools of a chat: those of the session's own sandbox and of every enabled server. One that fails to answer hides no other. */
import type { CallEntry } from '../../../contract/transcript.ts'
import type { OutputChunk } from '../../../workspace-server/protocol.ts'
import type { Audit, CallEnd } from '../../audit/audit.ts'
import { CallProgress, callFailed, callReturned } from '../../audit/call-end.ts'
import type { Caller } from '../../calls/caller.ts'
import {
  approvalHash,
  type OfferedTool,
  offerTools,
  type ToolDefinitionInput,
  WORKSPACE
} from '../../calls/offered-tool.ts'
import type { ListInput, ToolCallInput, ToolSource } from '../../calls/tool-source.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ReportRefusal } from '../../lib/refusals.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { ApprovalPolicy } from '../../policy/approval-policy.ts'
import type { ToolResult } from '../../sandbox/port.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import type { ToolCall } from '../sandboxes/run-sandbox-tool.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { expectedTarget, timesAsked } from './call-targets.ts'
import { logCallEnd } from './log-sessions.ts'

const LIST_MS = 10_000

export interface RunInput {
  sessionId: string
  call: CallEntry
  signal: AbortSignal
  onOutput: (chunk: OutputChunk) => void
}

export interface ToolboxOptions {
  sources: () => ToolSource[]
  ownerOf: (sessionId: string) => Promise<string>
  policy: ApprovalPolicy
  audit: Audit
  logger: Logger
  /** Hears of every tool or sandbox that a session was refused. */
  refused?: ReportRefusal
}

export class Toolbox {
  readonly #options: ToolboxOptions
  /** The same for every sandbox of this process: it is one image. */
  #workspaceTools: ToolDefinitionInput[] | undefined

  constructor(options: ToolboxOptions) {
    this.#options = options
  }

  /** What the model may be offered; who could not be asked is named, with the reason. */
  async offer(
    hold: HeldSession,
    sessionId: string,
    signal: AbortSignal
  ): Promise<{ tools: OfferedTool[]; missing: string[] }> {
    const asking = { caller: await this.#caller(sessionId), signal }
    const taken = new Set<string>()
    const tools: OfferedTool[] = []
    const missing: string[] = []
    const lists = await Promise.all(
      [WORKSPACE, ...this.#sources().map(({ server }) => server)].map(async (server) => {
        try {
          return { server, definitions: await this.#list(hold, server, asking) }
        } catch (error) {
          if (signal.aborted || isOwnershipError(error)) throw error
          const { logger, refused } = this.#options
          logger.warn({ err: error, sessionId, server }, `Left out of this turn: ${messageOf(error)}`)
          // A server that is down has metrics of its own.
          if (server === WORKSPACE) refused?.({ face: 'chat', code: isAppError(error) ? error.code : 'internal' })
          missing.push(`${server === WORKSPACE ? 'The sandbox' : server} is left out: ${messageOf(error)}`)
          return { server, definitions: [] }
        }
      })
    )
    for (const { server, definitions } of lists) tools.push(...offerTools(server, definitions, taken))
    return { tools, missing }
  }

  /** Runs what was approved, and only that: another definition or other arguments than the human saw are refused. */
  async run(hold: HeldSession, input: RunInput): Promise<void> {
    const { sessionId, call, signal, onOutput } = input
    const { callId, server, name, decision } = call
    if (!decision?.approved) throw new AppError('forbidden', 'not_approved', 'Nobody has approved this call.')
    const caller = await this.#caller(sessionId)
    const args = decision.editedArgs ?? call.args
    const end = this.#begin(input, caller, args)
    const progress = new CallProgress()
    try {
      await this.#checkApproved(hold, input, caller)
      progress.sending()
      const bound = { expected: expectedTarget(call), times: timesAsked(call) }
      const result = await this.#call(hold, server, { callId, caller, name, args, signal, onOutput }, bound)
      end({ ...callReturned(result), calledMs: progress.calledMs })
    } catch (error) {
      end({ ...callFailed(error, progress.stage), calledMs: progress.calledMs })
      throw error
    }
  }

  /** Returns what ends the call: in the audit log, in the log and in the metrics. */
  #begin({ sessionId, call }: RunInput, caller: Caller, args: ToolCallInput['args']): (end: CallEnd) => void {
    const { audit, logger, refused } = this.#options
    const { turnId, callId, server, name: tool } = call
    const began = performance.now()
    const record = audit.begin({ caller, server, tool, args })
    return (end) => {
      record(end)
      logCallEnd(logger, { sessionId, turnId, callId, server, tool }, end, performance.now() - began)
      const { outcome, code = 'internal' } = end
      if (outcome === 'refused' || outcome === 'failed') refused?.({ face: 'chat', code })
    }
  }

  async #checkApproved(hold: HeldSession, { sessionId, call, signal }: RunInput, caller: Caller): Promise<void> {
    const { callId, server, name } = call
    const tools = offerTools(server, await this.#list(hold, server, { caller, signal, live: true }), new Set())
    const tool = tools.find((candidate) => candidate.name === name)
    if (!tool) throw new AppError('not-found', 'tool_gone', `${server} no longer offers ${name}.`)
    const { args, target } = call
    if (approvalHash({ sessionId, callId, definition: tool.definition, args, target }) !== call.hash) {
      throw new AppError(
        'conflict',
        'definition_changed',
        `${server}/${name} is not the tool that was approved: it has changed since.`
      )
    }
    // A human takes their time, and the rules may have changed meanwhile.
    if (this.#options.policy(server, name) === 'deny') {
      throw new AppError('forbidden', 'denied_by_policy', `The policy in mcp.json does not allow ${server}/${name}.`)
    }
  }

  async #call(
    hold: HeldSession,
    server: string,
    input: ToolCallInput,
    bound: Pick<ToolCall, 'expected' | 'times'>
  ): Promise<ToolResult> {
    if (server === WORKSPACE) return (await hold.workspace(input.signal)).runTool({ ...input, ...bound })
    const source = this.#source(server)
    return hold.journal(input.callId, () => source.call(input))
  }

  async #list(hold: HeldSession, server: string, asking: ListInput): Promise<ToolDefinitionInput[]> {
    if (server === WORKSPACE) return this.#listWorkspace(hold, asking.signal)
    const source = this.#source(server)
    // Whoever has approved waits as long as the server may take to start.
    if (asking.live) return source.list(asking)
    const deadline = { what: `${server} to list its tools`, ms: LIST_MS, signal: asking.signal }
    return withDeadline(deadline, (signal) => source.list({ ...asking, signal }))
  }

  async #listWorkspace(hold: HeldSession, signal: AbortSignal): Promise<ToolDefinitionInput[]> {
    if (this.#workspaceTools) return this.#workspaceTools
    try {
      this.#workspaceTools = await (await hold.workspace(signal)).listTools()
    } catch (error) {
      // Another sandbox may have listed them meanwhile. This one is opened again when a call needs it, which then says why it can't be.
      if (!this.#workspaceTools || signal.aborted || isOwnershipError(error)) throw error
      this.#options.logger.warn({ err: error }, `The sandbox did not open yet: ${messageOf(error)}`)
    }
    return this.#workspaceTools
  }

  async #caller(sessionId: string): Promise<Caller> {
    return { owner: await this.#options.ownerOf(sessionId), door: 'chat', session: sessionId }
  }

  /** The sandbox's name is taken: a server under it would pass for the sandbox. */
  #sources(): ToolSource[] {
    return this.#options.sources().filter(({ server }) => server !== WORKSPACE)
  }

  #source(server: string): ToolSource {
    const source = this.#sources().find((candidate) => candidate.server === server)
    if (source) return source
    throw new AppError('not-found', 'tool_gone', `The server ${server} is no longer enabled.`)
  }
}
