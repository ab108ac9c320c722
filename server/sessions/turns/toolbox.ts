/**
 * The tools of a chat: those of the session's own sandbox and of every enabled server. A source that fails does not hide the
 * others.
 */
import { isOwnSource, WORKSPACE } from '../../../contract/own-sources.ts'
import type { CallEntry } from '../../../contract/transcript.ts'
import type { OutputChunk } from '../../../workspace-server/protocol.ts'
import type { ToolName } from '../../agent/tool-choice.ts'
import type { Audit, CallEnd } from '../../audit/audit.ts'
import { CallProgress, callFailed, callReturned } from '../../audit/call-end.ts'
import type { CallTalk } from '../../calls/call-talk.ts'
import type { Caller } from '../../calls/caller.ts'
import { approvalHash, type OfferedTool, offerTools, type ToolDefinitionInput } from '../../calls/offered-tool.ts'
import type { ToolCallInput, ToolSource } from '../../calls/tool-source.ts'
import { headOf } from '../../lib/cut-text.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ReportRefusal } from '../../lib/refusals.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { ApprovalPolicy } from '../../policy/approval-policy.ts'
import type { DefinitionGuard } from '../../policy/definition-guard.ts'
import { logCallEnd } from '../feed/log-sessions.ts'
import type { Previewed } from '../sandboxes/forks/forked-work.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import { settled } from '../sandboxes/run-sandbox-tool.ts'
import { sandboxTools } from '../sandboxes/sandbox-tools.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { alternativeFor } from './alternative-server.ts'
import { expectedTarget, timesAsked } from './call-targets.ts'
import { programSource } from './programs/program-source.ts'
import { type FindTools, routerSource } from './router-source.ts'

export interface RunInput {
  sessionId: string
  call: CallEntry
  signal: AbortSignal
  onOutput: (chunk: OutputChunk) => void
  talk?: CallTalk | undefined
  settle?: ToolCallInput['settle']
}

/** A source that could not be listed, and why. */
export interface MissingTools {
  server: string
  why: string
}

export interface ToolboxOptions {
  sources: () => ToolSource[]
  ownerOf: (sessionId: string) => Promise<string>
  policy: ApprovalPolicy
  guard: Pick<DefinitionGuard, 'changes'>
  audit: Audit
  logger: Logger
  /** Finds tools by words. Without it, the model is offered all tools. */
  find?: FindTools | undefined
  /** Whether the model may write programs. */
  hasPrograms?: boolean | undefined
  /** Called for every tool or sandbox that a session was refused. */
  refused?: ReportRefusal
}

const MATCHES = 8
/** Added if no tool seems to be meant. */
const DOUBTFUL_MATCHES = 3
const MATCH_MS = 5000
const MAX_MESSAGE = 4000
const MAX_FOUND = 200

export class Toolbox {
  readonly #options: ToolboxOptions
  readonly #sandboxSource: (hold: HeldSession) => ToolSource

  constructor(options: ToolboxOptions) {
    this.#options = options
    this.#sandboxSource = sandboxTools(options)
  }

  /** The tools to offer to the model. `missing` names the sources that could not be listed, with the reason. */
  async offer(
    hold: HeldSession,
    sessionId: string,
    signal: AbortSignal
  ): Promise<{ tools: OfferedTool[]; missing: MissingTools[] }> {
    const asking = { caller: await this.#caller(sessionId), signal }
    const taken = new Set<string>()
    const lists = await Promise.all(
      this.#sources(hold).map(async (source) => {
        const { server } = source
        try {
          return { server, definitions: await source.list(asking) }
        } catch (error) {
          if (signal.aborted || isOwnershipError(error)) throw error
          this.#options.logger.warn({ err: error, sessionId, server }, `Left out of this turn: ${messageOf(error)}`)
          return { server, definitions: [], missing: { server, why: whyMissing(source, error) } }
        }
      })
    )
    return {
      tools: lists.flatMap(({ server, definitions }) => offerTools(server, definitions, taken)),
      missing: lists.flatMap(({ missing }) => missing ?? [])
    }
  }

  /** The tools of servers that fit a message best. None if that can't be said in time: the model can still look for them. */
  async matches(sessionId: string, message: string, signal: AbortSignal): Promise<ToolName[]> {
    const { find, ownerOf, policy, logger } = this.#options
    if (!find || message.trim() === '') return []
    try {
      const owner = await ownerOf(sessionId)
      const { matches, abstained } = await withDeadline({ what: 'the best tools', ms: MATCH_MS, signal }, (inner) =>
        find(message.slice(0, MAX_MESSAGE), { limit: MATCHES, owner, signal: inner })
      )
      return matches
        .filter(({ server, tool }) => policy(server, tool) !== 'deny')
        .slice(0, abstained ? DOUBTFUL_MATCHES : MATCHES)
        .map(({ server, tool }) => ({ server, name: tool }))
    } catch (error) {
      signal.throwIfAborted()
      logger.warn({ err: error, sessionId }, `No tools were found for a message: ${messageOf(error)}`)
      return []
    }
  }

  /** For programs: the tools of servers that fit these words. */
  async search(sessionId: string, words: string, limit: number, signal: AbortSignal) {
    const { find, ownerOf, policy } = this.#options
    if (!find || words.trim() === '') return []
    const { matches } = await find(words.slice(0, MAX_MESSAGE), { limit, owner: await ownerOf(sessionId), signal })
    return matches
      .filter(({ server, tool }) => policy(server, tool) !== 'deny')
      .map(({ server, tool, confidence, description }) => ({
        ...{ server, tool, confidence: Math.round(confidence * 1000) / 1000 },
        description: headOf(description, MAX_FOUND)
      }))
  }

  /** Runs exactly what was approved: a call with another definition or other arguments than the person saw is refused. */
  async run(hold: HeldSession, input: RunInput): Promise<void> {
    const { call } = input
    const { decision, server, turnId } = call
    if (!decision?.approved) throw new AppError('forbidden', 'not_approved', 'Nobody has approved this call.')
    const isForked = call.ahead === 'review' && server === WORKSPACE
    await this.#make(hold, input, decision.editedArgs ?? call.args, (source, made) =>
      isForked ? hold.forks.run(made, turnId) : source.call(made)
    )
  }

  /** Runs a call of the sandbox in a fork before anyone has decided on it. */
  async preview(hold: HeldSession, input: RunInput): Promise<Previewed> {
    const { call } = input
    if (call.server !== WORKSPACE) throw new AppError('forbidden', 'not_approved', 'Only the sandbox can run ahead.')
    let previewed: Previewed | undefined
    await this.#make(hold, input, call.args, async (_source, made) => {
      previewed = await hold.forks.preview(made)
      return previewed.result
    })
    if (!previewed) throw new AppError('internal', 'internal', 'A preview has no result.')
    return previewed
  }

  /** Carries out a person's decision about changes of the workspace, and records its start and its end in the audit log. */
  async recorded<T>(sessionId: string, action: string, args: object, work: () => Promise<T>): Promise<T> {
    const end = this.#options.audit.begin({
      caller: await this.#caller(sessionId),
      ...{ server: WORKSPACE, tool: action, args }
    })
    try {
      const result = await work()
      end({ outcome: 'ok' })
      return result
    } catch (error) {
      end(callFailed(error, 'deciding'))
      throw error
    }
  }

  /** Checks the call, makes it, and records its start and its end in the audit log. */
  async #make(
    hold: HeldSession,
    input: RunInput,
    args: ToolCallInput['args'],
    make: (source: ToolSource, made: ToolCallInput) => Promise<{ isError?: boolean | undefined }>
  ): Promise<void> {
    const { sessionId, call, signal, onOutput, talk, settle } = input
    const { callId, server, name } = call
    const caller = await this.#caller(sessionId)
    const bound = { expected: expectedTarget(call), times: timesAsked(call) }
    const end = this.#begin(input, caller, args)
    const progress = new CallProgress()
    const instead = async (error: unknown, tool?: OfferedTool) => {
      const deps = { ...this.#options, sources: this.#servers() }
      return (await alternativeFor(deps, { call, caller, signal, error, tool })) ?? error
    }
    try {
      const source = this.#source(hold, server)
      const listed = await source.list({ caller, signal, live: true }).catch(async (error) => {
        throw server === WORKSPACE ? error : await instead(error)
      })
      const tool = this.#approvedTool(listed, input)
      signal.throwIfAborted()
      progress.sending()
      const onFailure = (error: unknown) => instead(error, tool)
      const result = await make(source, {
        callId,
        caller,
        name,
        args,
        signal,
        onOutput,
        talk,
        settle,
        onFailure,
        ...bound
      })
      end({ ...callReturned(result), calledMs: progress.calledMs })
    } catch (error) {
      const failure = isAppError(error, 'alternative_found') ? error.cause : error
      const isSent = !isAppError(failure) || failure.details.sent !== false
      end({ ...callFailed(failure, progress.stage), calledMs: isSent ? progress.calledMs : undefined })
      throw error
    }
  }

  /** Returns a function that records the end of the call in the audit log, the log and the metrics. */
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

  #approvedTool(listed: ToolDefinitionInput[], { sessionId, call }: RunInput): OfferedTool {
    const { callId, server, name } = call
    const tool = offerTools(server, listed, new Set()).find((candidate) => candidate.name === name)
    if (!tool) throw new AppError('not-found', 'tool_gone', `${server} no longer offers ${name}.`)
    const { args, target } = call
    if (approvalHash({ sessionId, callId, definition: tool.definition, args, target }) !== call.hash) {
      const message = `${server}/${name} is not the tool that was approved: it has changed since.`
      throw new AppError('conflict', 'definition_changed', message)
    }
    // The rules may have changed while the person decided.
    if (this.#options.policy(server, name) === 'deny') {
      throw new AppError('forbidden', 'denied_by_policy', `The policy in mcp.json does not allow ${server}/${name}.`)
    }
    return tool
  }

  async #caller(sessionId: string): Promise<Caller> {
    return { owner: await this.#options.ownerOf(sessionId), door: 'chat', session: sessionId }
  }

  #sources(hold: HeldSession): ToolSource[] {
    const servers = this.#servers()
    const programs = this.#options.hasPrograms ? [programSource()] : []
    const router = this.#routerSource(servers).map((source) => recorded(source, hold))
    const others = servers.map((source) => recorded(source, hold))
    return [this.#sandboxSource(hold), ...programs, ...router, ...others]
  }

  /** Decisions go by the name of a source, so no server may have a name of ours. */
  #servers(): ToolSource[] {
    return this.#options.sources().filter(({ server }) => !isOwnSource(server))
  }

  #routerSource(servers: readonly ToolSource[]): ToolSource[] {
    const { find, policy } = this.#options
    if (!find || servers.length === 0) return []
    const known = async (caller: Caller, signal: AbortSignal) => {
      const lists = servers.map(async (source) => {
        const { server } = source
        const definitions = await source.list({ caller, signal }).catch(() => [])
        return definitions.flatMap((each) => (policy(server, each.name) === 'deny' ? [] : { server, definition: each }))
      })
      return (await Promise.all(lists)).flat()
    }
    return [routerSource({ find, known })]
  }

  #source(hold: HeldSession, server: string): ToolSource {
    const source = this.#sources(hold).find((candidate) => candidate.server === server)
    if (source) return source
    throw new AppError('not-found', 'tool_gone', `The server ${server} is no longer enabled.`)
  }
}

function whyMissing({ server, title = server }: ToolSource, error: unknown): string {
  // While a failing server rests, the time until the next try changes, but not why it is missing.
  const { reason } = isAppError(error) ? error.details : {}
  const message = typeof reason === 'string' ? reason : messageOf(error)
  return message.includes(`"${server}"`) ? message : `${title} is left out: ${message}`
}

/** Records the start and the result of each call in the session's log, as the sandbox does for its own. */
function recorded(source: ToolSource, hold: HeldSession): ToolSource {
  const run = async (input: ToolCallInput) => {
    const result = await source.call(input).catch(async (error) => {
      throw input.onFailure ? await input.onFailure(error) : error
    })
    const log = input.talk?.logged() ?? []
    return { ...result, ...(log.length > 0 && { more: { log } }) }
  }
  const call = (input: ToolCallInput) =>
    hold.journal(
      input.callId,
      settled(() => run(input), input.settle),
      input.times
    )
  return { ...source, call }
}
