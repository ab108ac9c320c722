import { createHash } from 'node:crypto'
import type { SessionEvent } from '../../../contract/events.ts'
import { callOf, type Transcript } from '../../../contract/transcript.ts'
import { modelHistory, stepsInTurn } from '../../agent/model-history.ts'
import { modelStep } from '../../agent/model-step.ts'
import { requestedIds } from '../../agent/stored-parts.ts'
import { systemPromptFor } from '../../agent/system-prompt.ts'
import { estimateRequest } from '../../agent/trim-history.ts'
import { WORKSPACE } from '../../calls/offered-tool.ts'
import type { Models } from '../../models/port.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import type { ChatDeps } from './chat-options.ts'
import { missingNews } from './missing-news.ts'

/** The rest is for the answer. */
const HISTORY_SHARE = 0.8
const MIN_HISTORY_TOKENS = 1000

interface StepStart {
  hold: HeldSession
  sessionId: string
  turnId: string
  transcript: Transcript
  /** The events that the model's history is made of. */
  recent: readonly SessionEvent[]
  /** Shows a notice to the people in the session. */
  tell(code: string, message: string, servers?: string[]): Promise<void>
  signal: AbortSignal
}

/** Collects the tools and the history for the next model step, and starts it. */
export async function startStep(deps: ChatDeps, start: StepStart): Promise<ReturnType<typeof modelStep>> {
  const { toolbox, guard, models, policy, options, contents } = deps
  const { hold, sessionId, turnId, transcript, recent, signal } = start
  const { tools, missing } = await toolbox.offer(hold, sessionId, signal)
  signal.throwIfAborted()
  const news = stepsInTurn(recent, turnId) === 0 ? missingNews(missing, recent) : undefined
  if (news) await start.tell(news.code, news.message, news.servers)
  const model = transcript.model ?? (await models.resolve(undefined))
  const { settings } = transcript
  const instructions = { person: await deps.instructionsOf(sessionId), session: settings.instructions ?? '' }
  const system = systemPromptFor(tools, { ...options, mode: transcript.mode, instructions })
  const fixedTokens = estimateRequest({ system, tools, messages: [] })
  const requested = new Set(recent.flatMap(requestedIds))
  return modelStep({
    sessionId,
    turnId,
    model,
    system,
    history: modelHistory(recent, transcript),
    maxHistoryTokens: Math.min(options.maxHistoryTokens, await roomIn(models, model, fixedTokens)),
    maxOutputTokens: lower(settings.maxOutputTokens, options.maxOutputTokens),
    effort: settings.effort ?? options.effort,
    temperature: settings.temperature,
    tools,
    trimmingTold: recent.some(({ type, data }) => type === 'session:notice' && data.code === 'history_trimmed'),
    takenIds: (callId) => callOf(transcript, callId) !== undefined || requested.has(callId),
    allowed: transcript.allowed,
    changed: await guard.changes(tools.filter(({ server }) => server !== WORKSPACE)),
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

/** Not the id itself, which is nobody else's business. */
function cacheKeyOf(sessionId: string): string {
  return createHash('sha256').update(sessionId).digest('hex').slice(0, 32)
}

/** The history that fits into the model's context besides the tools and the answer. Our count is an estimate, so some room stays free. */
async function roomIn(models: Models, model: string, fixedTokens: number): Promise<number> {
  const { contextTokens } = (await models.catalog()).models.find(({ id }) => id === model) ?? {}
  if (contextTokens === undefined) return Number.POSITIVE_INFINITY
  return Math.max(MIN_HISTORY_TOKENS, Math.floor(contextTokens * HISTORY_SHARE) - fixedTokens)
}
