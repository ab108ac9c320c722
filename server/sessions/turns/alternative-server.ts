/**
 * Handles a call of the chat whose server could not run it: it is requested again on an alternative server that has the same
 * tool. The alternative needs its own rule or approval, because nobody has decided about it.
 */
import type { CallEntry } from '../../../contract/transcript.ts'
import { decide, type ModelStepInput } from '../../agent/model-step.ts'
import type { Caller } from '../../calls/caller.ts'
import { approvalHash, claimsOf, type OfferedTool, offerTools } from '../../calls/offered-tool.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { certainlyNotRun, mayRepeat } from '../../connections/wire/call-failure.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { ApprovalPolicy } from '../../policy/approval-policy.ts'
import type { DefinitionGuard } from '../../policy/definition-guard.ts'
import { mustNotBeRepeated } from '../../policy/tool-effects.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { onceKey } from '../sandboxes/session-events.ts'
import { MAX_TIMES_ASKED, timesAsked } from './call-targets.ts'

const MAX_REASON = 1000

export interface FailedCall {
  call: CallEntry
  caller: Caller
  signal: AbortSignal
  error: unknown
  /** Its tool as the server listed it right before the call; undefined if the server could not even be listed. */
  tool: OfferedTool | undefined
}

export interface AlternativeDeps {
  sources: readonly ToolSource[]
  policy: ApprovalPolicy
  guard: Pick<DefinitionGuard, 'changes'>
}

/** An error that names the alternative; undefined if there is none, or if the call may have run and must not run twice. */
export async function alternativeFor(deps: AlternativeDeps, failed: FailedCall): Promise<AppError | undefined> {
  const { call, signal, error, tool } = failed
  if (signal.aborted || !isAppError(error) || timesAsked(call) >= MAX_TIMES_ASKED) return undefined
  const mayRunElsewhere = tool === undefined || mayRepeat(error, mustNotBeRepeated(tool))
  const other = mayRunElsewhere ? await findAlternative(deps, failed) : undefined
  if (!other) return undefined
  const details = { alternative: other, sent: !(tool === undefined || certainlyNotRun(error)) }
  return new AppError('unavailable', 'alternative_found', messageOf(error), { cause: error, details })
}

/** Never one whose definition has changed and was not accepted, and none that a rule denies. */
async function findAlternative(
  { sources, policy, guard }: AlternativeDeps,
  { call: { server, name, again }, caller, signal }: FailedCall
): Promise<OfferedTool | undefined> {
  const tried = [...(again?.failedOn ?? []), server]
  const { alternatives = [] } = sources.find((source) => source.server === tried[0]) ?? {}
  for (const other of alternatives) {
    const source = tried.includes(other) ? undefined : sources.find((each) => each.server === other)
    if (!source || policy(other, name) === 'deny') continue
    const listed = await source.list({ caller, signal, live: true }).catch(() => [])
    signal.throwIfAborted()
    const tool = offerTools(other, listed, new Set()).find((each) => each.name === name)
    if (tool && (await guard.changes([tool])).size === 0) return tool
  }
  return undefined
}

/** The events that request a failed call again on the alternative that `error` names. */
export function askedElsewhere(
  sessionId: string,
  call: CallEntry,
  error: AppError,
  rules: Pick<ModelStepInput, 'policy' | 'allowed'>
): NewEvent[] {
  const { callId, turnId, decision, queuePosition, totalInQueue, again } = call
  const times = timesAsked(call) + 1
  const tool = error.details.alternative as OfferedTool
  const { server, name, definition } = tool
  const args = decision?.editedArgs ?? call.args
  const isEdited = decision?.editedArgs !== undefined || again?.isEdited === true
  const reason = `"${call.server}" could not run this call, and "${server}" has the same tool. ${error.message}`
  const asked = { callId, turnId, server, name, args, definition, queuePosition, totalInQueue, claims: claimsOf(tool) }
  const failedOn = [...(again?.failedOn ?? []), call.server]
  const rule = decide(rules, tool)
  const request: NewEvent = {
    type: 'tool:approval_required',
    data: {
      ...asked,
      hash: approvalHash({ sessionId, callId, definition, args }),
      again: { times, reason: reason.slice(0, MAX_REASON), isEdited, failedOn }
    },
    key: `again-${times}:${callId}`
  }
  if (!rule) return [request]
  const data = { callId, ...rule }
  return [request, { type: 'tool:approval_resolved', data, key: onceKey('decision', callId, times) }]
}
