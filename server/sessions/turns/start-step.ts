import { createHash } from 'node:crypto'
import type { SessionEvent } from '../../../contract/events.ts'
import { isOwnSource } from '../../../contract/own-sources.ts'
import { callOf, type Transcript } from '../../../contract/transcript.ts'
import { modelHistory, stepsInTurn } from '../../agent/model-history.ts'
import { modelStep } from '../../agent/model-step.ts'
import { requestedIds } from '../../agent/stored-parts.ts'
import { systemPromptFor } from '../../agent/system-prompt.ts'
import {
  chooseTools,
  isWithin,
  offeredBefore,
  type ToolChoice,
  type ToolName,
  usedTools
} from '../../agent/tool-choice.ts'
import { estimateRequest } from '../../agent/trim-history.ts'
import type { OfferedTool } from '../../calls/offered-tool.ts'
import type { Models } from '../../models/port.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import type { ChatDeps } from './chat-options.ts'
import { missingNews } from './missing-news.ts'

/** The rest is for the answer. */
const HISTORY_SHARE = 0.8
const MIN_HISTORY_TOKENS = 1000
/** How much of the model's context the definitions of tools may fill. */
const TOOLS_SHARE = 0.25

interface StepStart {
  hold: HeldSession
  sessionId: string
  turnId: string
  transcript: Transcript
  /** The events that the model's history is made of. */
  recent: readonly SessionEvent[]
  /** Shows a notice to the people in the session. */
  tell(code: string, message: string, servers?: string[]): Promise<void>
  append(events: NewEvent[]): Promise<unknown>
  signal: AbortSignal
}

/** Collects the tools and the history for the next model step, and starts it. */
export async function startStep(deps: ChatDeps, start: StepStart): Promise<ReturnType<typeof modelStep>> {
  const { toolbox, guard, models, policy, options, contents } = deps
  const { hold, sessionId, turnId, transcript, recent, signal } = start
  const { tools: known, missing } = await toolbox.offer(hold, sessionId, signal)
  signal.throwIfAborted()
  const news = stepsInTurn(recent, turnId) === 0 ? missingNews(missing, recent) : undefined
  if (news) await start.tell(news.code, news.message, news.servers)
  const model = transcript.model ?? (await models.resolve(undefined))
  const contextTokens = await contextOf(models, model)
  const { tools, isPartial } = await offerChosen(deps, start, known, contextTokens)
  const { settings } = transcript
  const instructions = { person: await deps.instructionsOf(sessionId), session: settings.instructions ?? '' }
  const system = systemPromptFor(known, { ...options, mode: transcript.mode, instructions, isPartial })
  const fixedTokens = estimateRequest({ system, tools, messages: [] })
  const requested = new Set(recent.flatMap(requestedIds))
  return modelStep({
    sessionId,
    turnId,
    model,
    system,
    history: modelHistory(recent, transcript),
    maxHistoryTokens: Math.min(options.maxHistoryTokens, roomIn(contextTokens, fixedTokens)),
    maxOutputTokens: lower(settings.maxOutputTokens, options.maxOutputTokens),
    effort: settings.effort ?? options.effort,
    temperature: settings.temperature,
    tools,
    known,
    trimmingTold: recent.some(({ type, data }) => type === 'session:notice' && data.code === 'history_trimmed'),
    takenIds: (callId) => callOf(transcript, callId) !== undefined || requested.has(callId),
    allowed: transcript.allowed,
    changed: await guard.changes(known.filter(({ server }) => !isOwnSource(server))),
    policy,
    mode: transcript.mode,
    step: (request) =>
      models.step({
        ...request,
        cacheKey: cacheKeyOf(sessionId),
        readFile: (id) => contents.getContent(sessionId, id)
      }),
    signal
  })
}

function lower(wished: number | undefined, limit: number | undefined): number | undefined {
  return wished === undefined || limit === undefined ? (wished ?? limit) : Math.min(wished, limit)
}

/** A hash, because the provider must not learn the id itself. */
function cacheKeyOf(sessionId: string): string {
  return createHash('sha256').update(sessionId).digest('hex').slice(0, 32)
}

/** The history that fits into the model's context besides the tools and the answer. Our count is an estimate, so some room stays free. */
function roomIn(contextTokens: number, fixedTokens: number): number {
  return Math.max(MIN_HISTORY_TOKENS, Math.floor(contextTokens * HISTORY_SHARE) - fixedTokens)
}

/** How much the model can read; infinite if nobody says. */
async function contextOf(models: Models, model: string): Promise<number> {
  const { contextTokens } = (await models.catalog()).models.find(({ id }) => id === model) ?? {}
  return contextTokens ?? Number.POSITIVE_INFINITY
}

/** Chooses the tools for the model, and records what is new in its list. */
async function offerChosen(
  { toolbox, options: { maxTools = Number.POSITIVE_INFINITY } }: ChatDeps,
  { sessionId, turnId, transcript, recent, append, signal }: StepStart,
  known: OfferedTool[],
  contextTokens: number
): Promise<ToolChoice> {
  const limit = { maxTools, maxTokens: contextTokens * TOOLS_SHARE }
  const isFirst = stepsInTurn(recent, turnId) === 0
  const wanted = isFirst && !isWithin(known, limit) ? await wantedTools() : []
  const choice = chooseTools(known, offeredBefore(recent), wanted, limit)
  const { added } = choice
  if (added.length > 0) await append([{ type: 'tools:offered', data: { turnId, tools: added } }])
  return choice

  async function wantedTools(): Promise<ToolName[]> {
    const requested = new Set(recent.flatMap(requestedIds))
    const used = usedTools(Object.values(transcript.calls).filter(({ callId }) => requested.has(callId)))
    const asked = recent.findLast((event) => event.type === 'user:message')
    return [...used, ...(asked ? await toolbox.matches(sessionId, asked.data.text, signal) : [])]
  }
}
