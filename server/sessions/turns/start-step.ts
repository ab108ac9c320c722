import type { SessionEvent } from '../../../contract/events.ts'
import { callOf, type Transcript } from '../../../contract/transcript.ts'
import { modelHistory, stepsInTurn } from '../../agent/model-history.ts'
import { modelStep } from '../../agent/model-step.ts'
import { systemPromptFor } from '../../agent/system-prompt.ts'
import { WORKSPACE } from '../../calls/offered-tool.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import type { ChatDeps } from './chat-options.ts'

interface StepStart {
  hold: HeldSession
  sessionId: string
  turnId: string
  transcript: Transcript
  /** The events that the model's history is made of. */
  recent: readonly SessionEvent[]
  /** Shows a notice to the people in the session. */
  tell(code: string, message: string): Promise<void>
  signal: AbortSignal
}

/** Collects the tools and the history for the next model step, and starts it. */
export async function startStep(deps: ChatDeps, start: StepStart): Promise<ReturnType<typeof modelStep>> {
  const { toolbox, guard, models, policy, options, contents } = deps
  const { hold, sessionId, turnId, transcript, recent, signal } = start
  const { tools, missing } = await toolbox.offer(hold, sessionId, signal)
  signal.throwIfAborted()
  if (missing.length > 0 && stepsInTurn(recent, turnId) === 0)
    await start.tell('tools_missing', missing.join(' ').slice(0, 2000))
  return modelStep({
    sessionId,
    turnId,
    model: transcript.model ?? (await models.resolve(undefined)),
    system: systemPromptFor(tools, options),
    history: modelHistory(recent, transcript),
    maxHistoryTokens: options.maxHistoryTokens,
    maxOutputTokens: options.maxOutputTokens,
    effort: options.effort,
    tools,
    trimmingTold: recent.some(({ type, data }) => type === 'session:notice' && data.code === 'history_trimmed'),
    takenIds: (callId) => callOf(transcript, callId) !== undefined,
    allowed: transcript.allowed,
    changed: await guard.changes(tools.filter(({ server }) => server !== WORKSPACE)),
    policy,
    step: (request) => models.step({ ...request, readFile: (id) => contents.getContent(sessionId, id) }),
    signal
  })
}
