/**
 * A human's yes where one is wanted: from the client in front of them, else from the web page's inbox, else a refusal that says
 * what to do. Invariant: what runs is what the human saw, same arguments, same definition and same entry of the registry.
 */

import type { ApprovalAnswer } from '../../../contract/rest.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import type { Connections } from '../../connections/connections.ts'
import { definitionChanged } from '../../connections/wire/call-failure.ts'
import { AppError } from '../../lib/errors.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { ApprovalInbox } from '../../policy/approval-inbox.ts'
import type { ApprovalPolicy } from '../../policy/approval-policy.ts'
import type { ChangedTools } from '../../policy/changed-tools.ts'
import type { DefinitionChange } from '../../policy/definition-guard.ts'
import type { ToolIndex } from '../../tools/tool-index.ts'
import type { ApprovedBy, ApprovedRounds } from './approved-rounds.ts'
import { callHash } from './client-prompter.ts'
import type { Continuations } from './continuations.ts'
import { OWN_QUESTION } from './name-asker.ts'
import { showAsData, showName } from './show-as-data.ts'
import type { CallContext, ToolRequest } from './tool-request.ts'

/** What asking stands on; without it only the client itself can be asked. */
export interface Approvals {
  inbox: ApprovalInbox
  definitions: ChangedTools
  continuations: Continuations
  waitMs: number
  /** Whether a changed definition alone makes a call wait. */
  asksAboutChange(server: string, tool: string): boolean
  /** Tools that a human has allowed in their client, until this process ends. */
  remembered: Set<string>
  rounds: ApprovedRounds
}

/** The services of the gateway that approving needs. */
export interface ApprovalServices {
  policy: ApprovalPolicy
  index: Pick<ToolIndex, 'entry'>
  connections: Pick<Connections, 'list'>
  approvals?: Approvals | undefined
}

interface Answer extends ApprovalAnswer {
  /** No more questions about this tool, as it is now, until this process ends. */
  remember?: boolean
}

interface Asked extends ToolRequest {
  change: DefinitionChange | undefined
  hash: string
}

const YES = 'Yes, run it'
const ALWAYS = 'Yes, and do not ask again for this tool'
const NO = 'No'
/** More than this is nothing that a person reads in a client's dialog; the page has room. */
const MAX_SHOWN = 20_000
const MAX_REMEMBERED = 1000
const TICK_MS = 5000

/** Resolves to who said yes, or undefined where nobody had to; rejects when it must not run. */
export async function approveCall(
  core: ApprovalServices,
  wish: ToolRequest,
  context: CallContext
): Promise<ApprovedBy | undefined> {
  const { server, args } = wish
  const { approvals } = core
  const mustAsk = core.policy(server, wish.tool.name) === 'ask' || wish.requiresApproval === true
  if (!mustAsk && !approvals?.asksAboutChange(server, wish.tool.name)) return undefined
  const tool = mustAsk ? wish.tool : await liveTool(core, server, wish.tool.name, context)
  const change = await approvals?.definitions.change(server, tool)
  if (!mustAsk && !change) return undefined
  const placeOf = () => core.index.entry(server)?.fingerprint
  const place = placeOf()
  const memory = callHash([context.caller.owner, server, place, tool.name, tool.hash])
  const earlier = change ? undefined : earlierYes(approvals, wish, memory, context)
  const asked = { ...wish, tool, change, hash: callHash([server, place, tool.name, tool.hash, args]) }
  const { answer, by } = earlier
    ? { answer: { approved: true } as Answer, by: earlier }
    : await ask(core, asked, context)
  if (!answer.approved) throw denied(wish, answer.reason)
  // What was looked at must be what the server really has when the call goes out.
  const live = await liveTool(core, server, tool.name, context)
  if (live.hash !== tool.hash || placeOf() !== place) {
    throw definitionChanged(server, tool.name)
  }
  if (change) await approvals?.definitions.accept(server, tool.name, change.after)
  // Only what the client itself asked: the inbox shows no such answers, and nobody could take one back there.
  if (
    by === 'client' &&
    answer.remember &&
    !wish.requiresApproval &&
    approvals &&
    approvals.remembered.size < MAX_REMEMBERED
  )
    approvals.remembered.add(memory)
  return by
}

/** To the call that this is the next round of, or to the tool as such. */
function earlierYes(
  approvals: Approvals | undefined,
  wish: ToolRequest,
  memory: string,
  { caller, retry }: CallContext
): ApprovedBy | undefined {
  const by = retry && approvals?.rounds.take({ ...wish, owner: caller.owner, state: retry.requestState })
  if (by) return by
  return !wish.requiresApproval && approvals?.remembered.has(memory) ? 'memory' : undefined
}

/** As the running server has it; starts it if need be. */
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
  asked: Asked,
  context: CallContext
): Promise<{ answer: Answer; by: ApprovedBy }> {
  const { approvals } = core
  const name = `${asked.server}/${asked.tool.name}`
  const message = question(asked, context)
  const { choose } = context.voice ?? {}
  const waitMs = approvals?.waitMs ?? 300_000
  if (choose && message.length <= MAX_SHOWN) {
    const deadline = {
      what: `a human's answer about ${name}`,
      ms: waitMs,
      signal: context.signal,
      code: 'approval_timeout'
    }
    // What is approved for this call alone can't be remembered: the next sentence may mean something else.
    const choices: [string, ...string[]] = asked.requiresApproval ? [YES, NO] : [YES, NO, ALWAYS]
    const chosen = await ticking(context, name, () =>
      withDeadline(deadline, (signal) => choose({ about: asked.hash, message, choices }, signal))
    )
    return { answer: { approved: chosen === YES || chosen === ALWAYS, remember: chosen === ALWAYS }, by: 'client' }
  }
  if (approvals && (await approvals.inbox.isAttended())) {
    const { server, tool, args, hash, change, filledBy } = asked
    const { door, client } = context.caller
    const card = {
      ...{ server, tool: tool.name, args, hash, asker: { door, ...(client === undefined ? {} : { client }) } },
      ...(change ? { definitionChange: change } : {}),
      ...(filledBy ? { filledBy } : {})
    }
    const answer = await ticking(context, name, () => approvals.inbox.ask(card, waitMs, context.signal))
    return { answer, by: 'inbox' }
  }
  throw new AppError('forbidden', 'approval_unavailable', unavailable(name, asked, choose !== undefined))
}

function unavailable(name: string, { change }: Asked, tooLong: boolean): string {
  const why = change
    ? `${name} has changed since it was accepted and needs a human's yes`
    : `${name} needs a human's yes`
  const how = tooLong ? 'it is too long for your client to show' : 'your client can show no question'
  const accept = change ? ', or accept its definition with "mcp-orchestrator servers accept"' : ''
  return `${why}; ${how}, and no web page is running: start "mcp-orchestrator serve" on the same store and answer there${accept}, or allow the tool under "approval" in mcp.json.`
}

function question({ server, tool, args, change, filledBy, found }: Asked, { caller }: CallContext): string {
  const lines = [
    OWN_QUESTION,
    `${caller.client === undefined ? 'A client' : showName(caller.client)} wants to run the tool ${showName(tool.name)} of the server ${showName(server)}, with exactly these arguments:`,
    showAsData(args)
  ]
  if (found) lines.push(`The client named no tool; this one was found for the request: ${showAsData(found.request)}`)
  if (found?.reason) lines.push(found.reason)
  if (filledBy) lines.push(`Not given by the caller but filled in: ${showAsData(filledBy)}`)
  if (change) {
    lines.push('This tool is not the one that was accepted before: its definition changed. Yes accepts the new one.')
    lines.push(`Before: ${showAsData(change.before)}`, `Now: ${showAsData(change.after)}`)
  }
  return lines.join('\n')
}

/** Clients give up on calls that are silent for long. */
async function ticking<T>({ onProgress }: CallContext, name: string, work: () => Promise<T>): Promise<T> {
  let ticks = 0
  // Far below 1: what the tool itself reports later must not be less.
  const tick = () =>
    onProgress?.({ progress: ticks++ / 1_000_000, message: `Waiting for a human's answer about ${name}` })
  tick()
  const timer = setInterval(tick, TICK_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

function denied({ server, tool }: ToolRequest, reason: string | undefined): AppError {
  const said = reason ? `: ${reason}` : '.'
  return new AppError(
    'forbidden',
    'approval_denied',
    `A human said no to ${server}/${tool.name}; it was not run${said}`
  )
}
