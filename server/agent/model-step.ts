/**
 * One step of the model, from the history to the events for the log. It streams what a person wants to see meanwhile. It does no
 * I/O of its own and runs no tools: a call becomes a request for approval, which only the policy may decide at once.
 */

import { randomUUID } from 'node:crypto'
import type { ApprovalMode } from '../../contract/effects/modes.ts'
import type { EventData, EventType } from '../../contract/events.ts'
import { PROGRAMS, ROUTER, WORKSPACE } from '../../contract/own-sources.ts'
import type { Effort } from '../../contract/session-settings.ts'
import { approvalHash, claimsOf, type OfferedTool } from '../calls/offered-tool.ts'
import { headOf } from '../lib/cut-text.ts'
import { AppError, isAppError } from '../lib/errors.ts'
import { plural } from '../lib/plural.ts'
import type { AssistantPart, ChatMessage, StepEvent, StepRequest } from '../models/port.ts'
import type { ApprovalPolicy } from '../policy/approval-policy.ts'
import type { DefinitionChange } from '../policy/definition-guard.ts'
import { boundAnswer } from './bound-answer.ts'
import { type MeantCall, meantCall } from './meant-call.ts'
import { toStored } from './stored-parts.ts'
import { estimateRequest, estimateTokens, trimHistory } from './trim-history.ts'

export type AgentEvent = { [T in EventType]: { type: T; data: EventData<T> } }[EventType]

export type StepOutput =
  /** The request is about to be sent, with an estimate of its size. */
  | { type: 'request'; inputTokens: number }
  | { type: 'delta'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'waiting'; message: string }
  /** The events for the log, all or none. They are the last output of a step. */
  | { type: 'events'; events: AgentEvent[] }

export interface ModelStepInput {
  sessionId: string
  turnId: string
  model: string
  system: string
  history: ChatMessage[]
  maxHistoryTokens: number
  maxOutputTokens?: number | undefined
  effort?: Effort | undefined
  temperature?: number | undefined
  /** The tools that the model is offered. */
  tools: OfferedTool[]
  /** All tools that it can call, also through `execute`. */
  known: OfferedTool[]
  /** Whether the user was told that the model no longer sees the oldest messages. */
  trimmingTold: boolean
  /** Whether a call of this session has this id, including calls that the model no longer sees. */
  takenIds: (callId: string) => boolean
  /** Tools that this session always allows, with the definition at that time. */
  allowed: Readonly<Record<string, string>>
  policy: ApprovalPolicy
  mode: ApprovalMode
  /** Tools by model name whose changed definition nobody has accepted yet. They always need approval. */
  changed: ReadonlyMap<string, DefinitionChange>
  step: (request: StepRequest) => AsyncIterable<StepEvent>
  signal: AbortSignal
}

type ToolCallPart = Extract<AssistantPart, { type: 'tool-call' }>
type Done = Extract<StepEvent, { type: 'done' }>

/** How much of the current history is kept at each try when the provider says that it is too long. */
const SHRINK = [1, 0.5, 0.25, 0.1]

export async function* modelStep(input: ModelStepInput): AsyncGenerator<StepOutput> {
  const size = Math.min(input.maxHistoryTokens, estimateTokens(input.history))
  for (const [attempt, share] of SHRINK.entries()) {
    try {
      return yield* tryStep(input, Math.floor(size * share))
    } catch (error) {
      if (!isAppError(error, 'model_context_full') || attempt === SHRINK.length - 1) throw error
      yield {
        type: 'waiting',
        message: 'The conversation is too long for this model: continuing without its oldest part.'
      }
    }
  }
}

async function* tryStep(input: ModelStepInput, maxHistoryTokens: number): AsyncGenerator<StepOutput> {
  const { messages, dropped } = trimHistory(input.history, maxHistoryTokens)
  const tools = input.tools.map(({ modelName, description, inputSchema }) => ({
    name: modelName,
    description,
    inputSchema
  }))
  const { model, system, signal, maxOutputTokens, effort, temperature } = input
  const limit = maxOutputTokens === undefined ? {} : { maxOutputTokens }
  yield { type: 'request', inputTokens: estimateRequest({ system, messages, tools }) }
  for await (const event of input.step({ model, system, messages, tools, signal, effort, temperature, ...limit })) {
    if (event.type === 'text-delta') yield { type: 'delta', text: event.text }
    if (event.type === 'reasoning-delta') yield { type: 'reasoning', text: event.text }
    if (event.type === 'retry') yield { type: 'waiting', message: retryText(event) }
    if (event.type === 'done') return yield { type: 'events', events: finish(input, event, dropped) }
  }
  throw new AppError(
    'unavailable',
    'model_stream_cut',
    "The model's answer ended in the middle; send the message again."
  )
}

function retryText({ reason, inMs }: { reason: string; inMs: number }): string {
  return `${reason} Retrying in ${Math.max(1, Math.round(inMs / 1000))} s.`
}

function finish(input: ModelStepInput, done: Done, dropped: number): AgentEvent[] {
  const { turnId } = input
  const { parts, requests } = requestCalls(input, boundAnswer(done.parts))
  const events: AgentEvent[] = []
  if (dropped > 0 && !input.trimmingTold) events.push(trimmedNotice(dropped))
  events.push(
    { type: 'agent:response', data: { turnId, ...toStored(parts) } },
    { type: 'usage', data: { turnId, ...done.usage } }
  )
  events.push(...requests, ...parts.flatMap(invalidCallNotice))
  const calls = parts.some((part) => part.type === 'tool-call')
  if (!calls) events.push({ type: 'turn:end', data: { turnId, reason: endReason(done.finish) } })
  return events
}

function endReason(finish: Done['finish']): 'done' | 'refused' | 'length' {
  if (finish === 'refusal') return 'refused'
  return finish === 'length' ? 'length' : 'done'
}

function trimmedNotice(dropped: number): AgentEvent {
  const message = `The model no longer sees the oldest part of this conversation (${plural(dropped, 'message')}).`
  return { type: 'session:notice', data: { code: 'history_trimmed', message } }
}

/** The model is told why; without this notice, the person would see a step in which nothing happens. */
function invalidCallNotice(part: AssistantPart): AgentEvent[] {
  if (part.type !== 'tool-call' || part.invalid === undefined) return []
  const message = `The model called "${headOf(part.name, 100)}" in a way that can't be run, and was told: ${part.invalid}`
  return [{ type: 'session:notice', data: { code: 'invalid_call', message } }]
}

/** Announces all calls of the step together. Calls that can't be run are marked, and the model is told why. */
function requestCalls(
  input: ModelStepInput,
  parts: AssistantPart[]
): { parts: AssistantPart[]; requests: AgentEvent[] } {
  const calls: (MeantCall & { callId: string })[] = []
  const marked = parts.map((part) => {
    if (part.type !== 'tool-call' || part.invalid !== undefined) return part
    const own = unique(input, part)
    const meant = meantCall(own, input.tools, input.known)
    if (typeof meant === 'string') return { ...own, invalid: meant }
    calls.push({ ...meant, callId: own.callId })
    return own
  })
  return { parts: marked, requests: calls.flatMap((call, at) => requestCall(input, call, at + 1, calls.length)) }
}

/** Some vendors number their calls from 0 in every request, so a call could get the answer to an earlier one with the same id. */
function unique({ takenIds }: ModelStepInput, part: ToolCallPart): ToolCallPart {
  const unusable = takenIds(part.callId) || part.callId in Object.prototype
  return unusable ? { ...part, callId: `call_${randomUUID()}` } : part
}

export type RequestInput = Pick<ModelStepInput, 'sessionId' | 'turnId' | 'changed' | 'policy' | 'allowed' | 'mode'>

/** The events that announce a call, with the decision if nobody has to be asked. The calls of programs come through here too. */
export function requestCall(
  input: RequestInput,
  { tool, args, callId }: MeantCall & { callId: string },
  queuePosition: number,
  totalInQueue: number
): AgentEvent[] {
  const { sessionId, turnId } = input
  const { server, name, definition } = tool
  const hash = approvalHash({ sessionId, callId, definition, args })
  const change = input.changed.get(tool.modelName)
  const definitionChange = change ? { definitionChange: change } : {}
  const rule = change && input.policy(server, name) !== 'deny' ? undefined : decide(input, tool)
  const { ahead, decision } = runAhead(input.mode, server, rule)
  const request: AgentEvent = {
    type: 'tool:approval_required',
    data: {
      ...{ callId, turnId, server, name, args, definition, hash, queuePosition, totalInQueue },
      ...definitionChange,
      ...(server !== WORKSPACE && { claims: claimsOf(tool) }),
      ...(ahead && { ahead })
    }
  }
  return decision ? [request, { type: 'tool:approval_resolved', data: { callId, ...decision } }] : [request]
}

type Decision = Omit<EventData<'tool:approval_resolved'>, 'callId'>

/**
 * Whether the call runs in a fork. Only the sandbox's own tools do, whatever a server says of its tools. In a reviewed turn all of
 * them do, so that they see the same files.
 */
function runAhead(
  mode: ApprovalMode,
  server: string,
  rule: Decision | undefined
): { ahead?: 'preview' | 'review'; decision: Decision | undefined } {
  if (mode === 'ask' || server !== WORKSPACE || rule?.approved === false) return { decision: rule }
  if (mode === 'preview') return rule ? { decision: rule } : { ahead: mode, decision: rule }
  return { ahead: mode, decision: rule ?? { approved: true, by: 'review' } }
}

/** The decision of the rules and of the session's own permissions about a call; undefined if a person decides. */
export function decide(
  { policy, allowed }: Pick<ModelStepInput, 'policy' | 'allowed'>,
  { server, name, definition }: Pick<OfferedTool, 'server' | 'name' | 'definition'>
): Decision | undefined {
  // Finding tools is our own work; it tells the model what is there and does nothing else. A program only makes calls, and each is decided.
  if (server === ROUTER || server === PROGRAMS) return { approved: true, by: 'policy' }
  const rule = policy(server, name)
  if (rule === 'deny') return { approved: false, by: 'policy', reason: `${server}/${name} is not allowed here.` }
  if (rule === 'allow') return { approved: true, by: 'policy' }
  // The user allowed this exact definition; a changed one needs approval again.
  return allowed[`${server}/${name}`] === definition ? { approved: true, by: 'session' } : undefined
}
