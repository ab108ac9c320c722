/**
 * Calls one tool for an administrator who tries it in the page. Invariant: the call is recorded first, it runs with the definition that
 * was shown, a tool that may change something needs a second, explicit request, and nothing shows a secret that the server repeats.
 */
import type { ToolTrial, ToolTrialReply, TriedTool } from '../../contract/servers/servers.ts'
import type { Audit } from '../audit/audit.ts'
import { CallProgress, callFailed, callReturned } from '../audit/call-end.ts'
import { boundContent } from '../calls/bound-content.ts'
import type { Caller } from '../calls/caller.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import type { Connections } from '../connections/connections.ts'
import { AppError } from '../lib/errors.ts'
import { redactTexts } from '../lib/redact-texts.ts'
import type { ApprovalPolicy } from '../policy/approval-policy.ts'
import { isReader } from '../policy/tool-effects.ts'
import type { ToolIndex } from './tool-index.ts'

interface TrialDeps {
  index: Pick<ToolIndex, 'entry' | 'tools'>
  connections: Pick<Connections, 'list' | 'call' | 'connection' | 'chatLane'>
  /** The chat's rules: what never runs there does not run here. */
  policy: ApprovalPolicy
  audit: Pick<Audit, 'begin'>
}

export interface Trying {
  server: string
  owner: string
  signal: AbortSignal
}

/** The tool as the running server has it; starts the server if necessary. */
export async function findTool(deps: TrialDeps, trying: Trying, name: string): Promise<TriedTool> {
  const { tool, tools } = await lookUp(deps, trying, name)
  const { description, inputSchema } = redactFromServer(deps, trying, tool)
  const { hash } = tool
  const mayChange = !isReader(deps.index.entry(trying.server), tools, tool)
  return { name, description, inputSchema, definition: hash, mayChange }
}

export async function tryTool(deps: TrialDeps, trying: Trying, trial: ToolTrial): Promise<ToolTrialReply> {
  const { server, signal } = trying
  const { tool: name, args, definition, isConfirmed } = trial
  if (deps.policy(server, name) === 'deny')
    throw new AppError('forbidden', 'denied_by_policy', `The policy in mcp.json does not allow ${server}/${name}.`)
  const { mayChange } = await findTool(deps, trying, name)
  if (mayChange && !isConfirmed) {
    const message = `${server}/${name} may change something. Confirm that you want to run it.`
    throw new AppError('conflict', 'confirmation_needed', message)
  }
  const caller = callerOf(deps, trying)
  const end = deps.audit.begin({ caller, server, tool: name, args })
  const progress = new CallProgress()
  const began = performance.now()
  try {
    const mayRun = async ({ hash }: StoredTool) => hash === definition
    progress.sending()
    const call = { caller, tool: name, args, mustNotRepeat: true, signal, mayRun }
    const { result } = redactFromServer(deps, trying, await deps.connections.call(server, call))
    const content = Array.isArray(result.content) ? result.content : []
    const isError = result.isError === true
    end({ ...callReturned({ isError }), calledMs: progress.calledMs })
    return { isError, content: boundContent(content), ms: Math.round(performance.now() - began) }
  } catch (error) {
    end({ ...callFailed(error, progress.stage), calledMs: progress.calledMs })
    throw error
  }
}

async function lookUp(
  deps: TrialDeps,
  trying: Trying,
  name: string
): Promise<{ tool: StoredTool; tools: StoredTool[] }> {
  const { server, signal } = trying
  const tools = await deps.connections.list(server, { caller: callerOf(deps, trying), signal })
  const tool = tools.find((each) => each.name === name)
  if (tool) return { tool, tools }
  throw new AppError('not-found', 'unknown_tool', `The server "${server}" has no tool "${name.slice(0, 100)}".`)
}

/** A copy of what the server said, without the secrets that it was given. */
export function redactFromServer<T>(
  deps: { connections: Pick<Connections, 'connection' | 'chatLane'> },
  trying: Trying,
  said: T
): T {
  const { log } = deps.connections.connection(trying.server, callerOf(deps, trying))
  // Texts stay texts, and everything else stays as it is.
  return redactTexts(said, (text) => log.redact(text)) as T
}

export function callerOf({ connections }: { connections: Pick<Connections, 'chatLane'> }, { owner }: Trying): Caller {
  return { owner, door: 'http', client: 'page', laneId: connections.chatLane }
}
