/**
 * Gets approval for a call that needs it: from the client's user, else from the web page's inbox; otherwise it refuses with an
 * error that says what to do. Invariant: what runs is what the person saw, with the same arguments, definition and registry
 * entry.
 */

import type { ApprovalAnswer } from '../../../contract/rest.ts'
import { claimsOf } from '../../calls/offered-tool.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import type { Connections } from '../../connections/connections.ts'
import { definitionChanged } from '../../connections/wire/call-failure.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { ApprovalInbox, NewCard } from '../../policy/approval-inbox.ts'
import type { ApprovalPolicy } from '../../policy/approval-policy.ts'
import type { ChangedTools } from '../../policy/changed-tools.ts'
import type { DefinitionChange } from '../../policy/definition-guard.ts'
import type { ToolIndex } from '../../tools/tool-index.ts'
import type { ApprovedBy, ApprovedRounds } from './approved-rounds.ts'
import { callHash, clientCouldNotAsk, InputNeeded } from './client-prompter.ts'
import type { Continuations } from './continuations.ts'
import { OWN_QUESTION } from './name-asker.ts'
import { showAsData, showName } from './show-as-data.ts'
import type { CallContext, ToolRequest } from './tool-request.ts'

/** The services that approvals use. Without them, only the client itself can be asked. */
export interface Approvals {
  inbox: ApprovalInbox
  definitions: ChangedTools
  continuations: Continuations
  waitMs: number
  /** Whether a changed definition alone makes a call wait for approval. */
  asksAboutChange(server: string, tool: string): boolean
  /** Tools that a user has always allowed in their client, until this process ends. */
  remembered: Set<string>
  rounds: ApprovedRounds
}

/** The services of the gateway that approvals need. */
export interface ApprovalServices {
  policy: ApprovalPolicy
  index: Pick<ToolIndex, 'entry'>
  connections: Pick<Connections, 'list'>
  approvals?: Approvals | undefined
}

interface Answer extends ApprovalAnswer {
  /** Don't ask again about this tool, as it is now, until this process ends. */
  remember?: boolean
}

interface ApprovalRequest extends ToolRequest {
  change: DefinitionChange | undefined
  hash: string
}

const APPROVE = 'Approve'
const APPROVE_ALWAYS = 'Approve, and do not ask again for this tool'
const REJECT = 'Reject'
/** Nobody reads more than this in a client's dialog; the web page has room for it. */
const MAX_SHOWN = 20_000
const MAX_REMEMBERED = 1000
const TICK_MS = 5000
const FOUND = 'The client named no tool. This one was found for the request'

/** Resolves to who approved the call, or undefined if no approval was needed. Rejects if the call must not run. */
export async function approveCall(
  core: ApprovalServices,
  request: ToolRequest,
  context: CallContext
): Promise<ApprovedBy | undefined> {
  const { server, args } = request
  const { approvals } = core
  const mustAsk = core.policy(server, request.tool.name) === 'ask' || request.requiresApproval === true
  if (!mustAsk && !approvals?.asksAboutChange(server, request.tool.name)) return undefined
  const tool = mustAsk ? request.tool : await liveTool(core, server, request.tool.name, context)
  const change = await approvals?.definitions.change(server, tool)
  if (!mustAsk && !change) return undefined
  const placeOf = () => core.index.entry(server)?.fingerprint
  const place = placeOf()
  const memory = callHash([context.caller.owner, server, place, tool.name, tool.hash])
  const earlier = change ? undefined : earlierApproval(approvals, request, memory, context)
  const { warning } = request
  const seen = [server, place, tool.name, tool.hash, args, ...(warning === undefined ? [] : [warning])]
  const approvalRequest = { ...request, tool, change, hash: callHash(seen) }
  const { answer, by } = earlier
    ? { answer: { approved: true } as Answer, by: earlier }
    : await ask(core, approvalRequest, context)
  if (!answer.approved) throw denied(request, answer.reason)
  // The server's definition at the time of the call must be the one that was approved.
  const live = await liveTool(core, server, tool.name, context)
  if (live.hash !== tool.hash || placeOf() !== place) {
    throw definitionChanged(server, tool.name)
  }
  if (change) await approvals?.definitions.accept(server, tool.name, change.after)
  // Only answers given in the client are remembered: the page shows no list of them, so nobody could revoke one there.
  if (
    by === 'client' &&
    answer.remember &&
    !request.requiresApproval &&
    approvals &&
    approvals.remembered.size < MAX_REMEMBERED
  )
    approvals.remembered.add(memory)
  return by
}

/** An approval of the previous round of this call, or of the tool as such. */
function earlierApproval(
  approvals: Approvals | undefined,
  request: ToolRequest,
  memory: string,
  { caller, retry }: CallContext
): ApprovedBy | undefined {
  const by = retry && approvals?.rounds.take({ ...request, owner: caller.owner, state: retry.requestState })
  if (by) return by
  return !request.requiresApproval && approvals?.remembered.has(memory) ? 'memory' : undefined
}

/** The tool as the running server defines it; starts the server if necessary. */
async function liveTool(
  core: ApprovalServices,
  server: string,
  tool: string,
  asking: CallContext
): Promise<StoredTool> {
  const live = (await core.connections.list(server, asking)).find(({ name }) => name === tool)
  if (live) return live
  throw new AppError('not-found', 'unknown_tool', `The server "${server}" has no tool "${tool.slice(0, 100)}".`)
}

async function ask(
  core: ApprovalServices,
  approvalRequest: ApprovalRequest,
  context: CallContext
): Promise<{ answer: Answer; by: ApprovedBy }> {
  const { approvals } = core
  const name = `${approvalRequest.server}/${approvalRequest.tool.name}`
  const message = question(approvalRequest, context)
  const { choose } = context.prompter ?? {}
  const waitMs = approvals?.waitMs ?? 300_000
  if (context.asker) {
    context.onAsking?.()
    return { answer: await context.asker(cardOf(approvalRequest, context)), by: 'inbox' }
  }
  if (choose && message.length <= MAX_SHOWN) {
    const deadline = {
      what: `approval of ${name}`,
      ms: waitMs,
      signal: context.signal,
      code: 'approval_timeout'
    }
    // An approval for this call only is not remembered: the next sentence may mean something else.
    const choices: [string, ...string[]] = approvalRequest.requiresApproval
      ? [APPROVE, REJECT]
      : [APPROVE, REJECT, APPROVE_ALWAYS]
    const chosen = await ticking(context, name, () =>
      withDeadline(deadline, (signal) => choose({ about: approvalRequest.hash, message, choices }, signal))
    ).catch((error) => {
      if (isAppError(error) || error instanceof InputNeeded || context.signal.aborted) throw error
      throw clientCouldNotAsk()
    })
    return {
      answer: { approved: chosen === APPROVE || chosen === APPROVE_ALWAYS, remember: chosen === APPROVE_ALWAYS },
      by: 'client'
    }
  }
  if (approvals && (await approvals.inbox.isAttended())) {
    const card = cardOf(approvalRequest, context)
    const answer = await ticking(context, name, () => approvals.inbox.ask(card, waitMs, context.signal))
    return { answer, by: 'inbox' }
  }
  throw new AppError('forbidden', 'approval_unavailable', unavailable(name, approvalRequest, choose !== undefined))
}

function cardOf(
  { server, tool, args, hash, change, filledBy, warning }: ApprovalRequest,
  { caller: { owner, door, client } }: CallContext
): NewCard {
  return {
    ...{ owner, server, tool: tool.name, args, hash, asker: { door, ...(client === undefined ? {} : { client }) } },
    claims: claimsOf(tool),
    ...(change ? { definitionChange: change } : {}),
    ...(filledBy ? { filledBy } : {}),
    ...(warning === undefined ? {} : { warning })
  }
}

function unavailable(name: string, { change }: ApprovalRequest, tooLong: boolean): string {
  const why = change ? `${name} has changed since it was accepted and needs approval` : `${name} needs approval`
  const how = tooLong ? 'the question is too long for your client to show' : "your client can't ask you"
  const accept = change ? ', or accept its definition with "mcp-orchestrator servers accept"' : ''
  return `${why}, but ${how}, and no web page is running. Start "mcp-orchestrator serve" on the same store and answer there${accept}, or allow the tool under "approval" in mcp.json.`
}

function question({ server, tool, args, change, filledBy, found }: ApprovalRequest, { caller }: CallContext): string {
  const lines = [
    OWN_QUESTION,
    `${caller.client === undefined ? 'A client' : showName(caller.client)} wants to run the tool ${showName(tool.name)} of the server ${showName(server)}, with exactly these arguments:`,
    showAsData(args)
  ]
  if (found) {
    const how = found.isNamed ? 'The client named this tool for the request' : FOUND
    lines.push(`${how}: ${showAsData(found.request)}`)
  }
  if (found?.reason) lines.push(found.reason)
  if (filledBy) lines.push(`Filled in, not given by the caller: ${showAsData(filledBy)}`)
  if (change) {
    lines.push('The definition of this tool has changed since it was accepted. If you approve, you accept the new one.')
    lines.push(`Before: ${showAsData(change.before)}`, `Now: ${showAsData(change.after)}`)
  }
  return lines.join('\n')
}

/** Reports progress while waiting: clients give up on calls that are silent for too long. */
async function ticking<T>({ onProgress, onAsking }: CallContext, name: string, work: () => Promise<T>): Promise<T> {
  onAsking?.()
  let ticks = 0
  // Far below 1, so that the progress of the tool itself is never less.
  const tick = () => onProgress?.({ progress: ticks++ / 1_000_000, message: `Waiting for approval of ${name}` })
  tick()
  const timer = setInterval(tick, TICK_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

function denied({ server, tool }: ToolRequest, reason: string | undefined): AppError {
  const why = reason ? `: ${reason}` : '.'
  return new AppError(
    'forbidden',
    'approval_denied',
    `The call of ${server}/${tool.name} was rejected and not run${why}`
  )
}
