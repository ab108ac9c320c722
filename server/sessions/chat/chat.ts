/**
 * The actions of a person in a session: send, decide, stop, start afresh. Each action is one log entry, written once by the instance
 * that hears of it first; the turn driver continues from there. The caller must check access to the session.
 */

import type { CommandData } from '../../../contract/commands.ts'
import type { ChangeSummary } from '../../../contract/effects/change-set.ts'
import { type PathTarget, pathOf } from '../../../contract/path-target.ts'
import { settingsChange } from '../../../contract/session-settings.ts'
import { type CallEntry, lastAnswer, type Transcript, undecidedCalls } from '../../../contract/transcript.ts'
import { reopening } from '../../agent/reopening.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { appendEvents } from '../sandboxes/session-events.ts'
import { resolveIn } from '../turns/call-targets.ts'
import { endOf, noticeOf } from '../turns/turn-events.ts'
import { alreadyAnswered, answerTo } from './answers.ts'
import {
  approvedReads,
  cancellations,
  cancelledNotice,
  decisionOn,
  editedPreview,
  remembered,
  requireWaitingCall,
  type SwitchChoice,
  switchedModel
} from './decisions.ts'
import { checkChoices, checkCounted, firstMode, modeChange, reviewDecided, reviewDecision } from './mode-decisions.ts'
import {
  messageData,
  messageEvent,
  nothingToRetry,
  notRestorable,
  olderInstances,
  RESTORED_FORMAT,
  restoring,
  rewinding,
  rewindStart,
  turnInProgress,
  turnKey,
  turnOfMessage
} from './new-turns.ts'
import { OpenChats } from './open-chats.ts'
import { checkNothingRuns, revertedEvent, revertFiles, untoldReverts } from './reverts.ts'

export class Chat extends OpenChats {
  /** Sets the first model of a new session; does nothing later. Returns the session's model. */
  async begin(sessionId: string, model: string): Promise<string> {
    const transcript = await this.transcript(sessionId)
    if (transcript.model !== null) return transcript.model
    const selected = { type: 'model:selected', data: { model }, key: 'model:first' }
    const first = await this.#once(sessionId, [selected, ...firstMode(this.deps.options)])
    // From now on the janitor knows the session, so that it expires even without a message.
    if (first) await this.deps.sessions.hold(sessionId, async () => {})
    return (await this.transcript(sessionId)).model ?? model
  }

  /** A repeated message with the same id was only sent again because its response was lost: the first one counts. */
  async send(sessionId: string, message: CommandData<'message'>): Promise<{ turnId: string }> {
    const { id } = message
    const transcript = await this.#begun(sessionId)
    const known = turnOfMessage(transcript, id)
    if (known) return { turnId: known }
    if (transcript.turnId !== null) throw turnInProgress()
    await this.deps.checkQuota(sessionId)
    await this.#completeReverts(sessionId, transcript)
    const event = messageEvent(transcript.turns + 1, await messageData(this.deps.contents, sessionId, message))
    const sent = await this.#once(sessionId, [event])
    const turnId = sent ? event.data.turnId : turnOfMessage(await this.transcript(sessionId), id)
    if (!turnId) throw turnInProgress()
    this.chatOf(sessionId).driver.wake()
    return { turnId }
  }

  /** Tries the last answer again. If two people do this at once, or one sends a message meanwhile, the first action counts. */
  async retry(sessionId: string, { turnId: of }: CommandData<'turn:retry'>): Promise<{ turnId: string }> {
    const transcript = await this.#begun(sessionId)
    if (transcript.turnId !== null) throw turnInProgress()
    const last = lastAnswer(transcript)
    if (!last) throw nothingToRetry()
    if (of !== undefined && of !== last.turnId)
      throw new AppError('conflict', 'not_last_answer', 'Only the last answer can be retried; there is a newer one.')
    await this.deps.checkQuota(sessionId)
    const number = transcript.turns + 1
    const { conversation, driver } = this.chatOf(sessionId)
    await conversation.refresh()
    const data = { turnId: `t${number}`, ...reopening(conversation.recent, transcript, last) }
    // The key of the next message: both begin a turn.
    if (!(await this.#once(sessionId, [{ type: 'turn:reopened', data, key: turnKey(number) }]))) throw turnInProgress()
    // A fresh start may have come first.
    if ((await this.transcript(sessionId)).turnId !== data.turnId) throw nothingToRetry()
    driver.wake()
    return { turnId: data.turnId }
  }

  async decide(sessionId: string, answer: CommandData<'tool:approval'>): Promise<void> {
    const call = await this.#decided(sessionId, answer)
    if (answer.approved && call.definitionChange)
      await this.deps.guard.accept(call.server, call.name, call.definitionChange.after)
    this.chatOf(sessionId).driver.wake()
  }

  /** Keeping or discarding a preview gets its own row in the audit log; the call itself was recorded when it ran. */
  async #decided(sessionId: string, answer: CommandData<'tool:approval'>): Promise<CallEntry> {
    const { callId, hash, approved } = answer
    const isPreview = requireWaitingCall(await this.#begun(sessionId), callId).preview !== undefined
    if (!isPreview) return this.#record(sessionId, answer)
    const action = approved ? 'keep_changes' : 'discard_changes'
    return this.deps.toolbox.recorded(sessionId, action, { callId, hash }, () => this.#record(sessionId, answer))
  }

  /** Appends the decision, together with those on the calls that "Always allow" covers. */
  async #record(sessionId: string, answer: CommandData<'tool:approval'>): Promise<CallEntry> {
    for (;;) {
      const transcript = await this.#begun(sessionId)
      const call = requireWaitingCall(transcript, answer.callId)
      if (call.preview && answer.args) {
        if (await this.#once(sessionId, [editedPreview(sessionId, call, answer)])) return call
        continue
      }
      const events = [decisionOn(call, answer)]
      if (call.preview && answer.approved)
        await checkChoices(this.deps.sessions, sessionId, `call:${call.callId}`, answer)
      if (answer.approved && answer.remember) events.push(...remembered(transcript, call, this.deps.policy))
      if (answer.approved && answer.reads) events.push(...approvedReads(transcript, call))
      if (await this.#once(sessionId, events)) return call
      // Someone decided one of these calls at the same moment. Unless it was this one, try again.
    }
  }

  /** Answers a question of a running call's MCP server. The call may run on another instance, which reads the answer in the log. */
  async answer(sessionId: string, answer: CommandData<'tool:answer'>): Promise<void> {
    if (!(await this.#once(sessionId, [answerTo(await this.#begun(sessionId), answer)]))) throw alreadyAnswered()
    this.chatOf(sessionId).driver.wake()
  }

  /** Where a waiting call would lead with these arguments. The page shows it before an edit is approved. */
  async target(sessionId: string, { callId, args }: CommandData<'tool:target'>): Promise<{ target?: PathTarget }> {
    const call = requireWaitingCall(await this.#begun(sessionId), callId)
    const path = pathOf(call, args)
    if (path === undefined) return {}
    const [target] = await this.deps.sessions.hold(sessionId, (hold) => resolveIn(hold, [path]))
    return target ? { target } : {}
  }

  /** Ends the turn: waiting calls are not run, running ones are stopped. */
  async cancel(sessionId: string): Promise<void> {
    const { turnId } = await this.#begun(sessionId)
    if (turnId === null) throw new AppError('conflict', 'no_turn', 'There is nothing to stop.')
    await this.#stopAnd(sessionId, () => [], { only: turnId })
  }

  async reset(sessionId: string): Promise<void> {
    const why = 'A fresh history was started.'
    const then = (cancelled: number) => [...cancelledNotice(cancelled, why), { type: 'history:reset', data: {} }]
    await this.#stopAnd(sessionId, then, { why })
  }

  /** Continues with another model, which starts with a fresh history or gets the conversation. Files and the readable past stay. */
  async selectModel(sessionId: string, model: string, how: SwitchChoice = {}): Promise<void> {
    if ((await this.#begun(sessionId)).model === model) return
    await this.deps.models.prove(model)
    const why = `The model was switched to ${model}.`
    await this.#stopAnd(sessionId, (cancelled) => switchedModel({ model, ...how }, cancelled, why), { why })
  }

  async selectMode(sessionId: string, { mode }: CommandData<'mode:select'>): Promise<void> {
    const events = modeChange(await this.#begun(sessionId), mode, this.deps.options)
    if (events.length > 0) await appendEvents(this.deps, sessionId, events)
  }

  /** Records the person's decision on a review. The first one counts; the turn driver applies it. */
  async decideReview(sessionId: string, answer: CommandData<'review:decide'>): Promise<void> {
    const decision = reviewDecision(await this.#begun(sessionId), answer)
    const { reviewId, hash, accept } = answer
    await this.deps.toolbox.recorded(sessionId, 'review_changes', { reviewId, hash, accept }, async () => {
      await checkChoices(this.deps.sessions, sessionId, `review:${reviewId}`, answer)
      if (!(await this.#once(sessionId, [decision]))) throw reviewDecided()
      checkCounted(await this.transcript(sessionId), answer)
    })
    this.chatOf(sessionId).driver.wake()
  }

  /** Takes back the conversation from an entry on. A message that comes with it takes its place in the same append. */
  async rewind(sessionId: string, rewind: CommandData<'history:rewind'>): Promise<{ turnId?: string }> {
    const { from, message } = rewind
    const known = async () => turnOfMessage(await this.#begun(sessionId), message?.id)
    const before = await known()
    if (before) return { turnId: before }
    if (message) await this.deps.checkQuota(sessionId)
    if (message) await this.#completeReverts(sessionId, await this.#begun(sessionId))
    const said = message && (await messageData(this.deps.contents, sessionId, message))
    const { conversation } = this.chatOf(sessionId)
    await conversation.refresh()
    let begun: string | undefined
    const then = (_cancelled: number, transcript: Transcript) => {
      begun = said && `t${transcript.turns + 2}`
      return rewinding(transcript, rewindStart(conversation.recent, transcript, from), said)
    }
    try {
      await this.#stopAnd(sessionId, then, { why: 'The conversation was taken back.' })
    } catch (error) {
      // The same command may have been sent again while the first one ran.
      begun = isAppError(error, 'not_rewindable') ? await known() : undefined
      if (begun === undefined) throw error
    }
    this.chatOf(sessionId).driver.wake()
    return begun === undefined ? {} : { turnId: begun }
  }

  /** Undoes the last rewind, if nothing was said since. If a message comes at the same moment, the first one counts. */
  async restore(sessionId: string, { of }: CommandData<'history:restore'>): Promise<object> {
    const event = restoring(await this.#begun(sessionId), of)
    // An older instance would not see it, and take the person's next message for one that it has already.
    if (!(await this.deps.mayWrite(RESTORED_FORMAT))) throw olderInstances()
    if (!(await this.#once(sessionId, [event]))) throw notRestorable()
    return {}
  }

  /** Undoes one version of the workspace, or all since. Returns the version that this makes; none if nothing changed. */
  async revert(sessionId: string, request: CommandData<'files:revert'>): Promise<{ changes?: ChangeSummary }> {
    checkNothingRuns(await this.#begun(sessionId))
    await this.deps.checkQuota(sessionId)
    const { changeId, scope, hash } = request
    const version = await this.deps.toolbox.recorded(sessionId, 'revert_changes', { changeId, scope, hash }, () =>
      this.deps.sessions.hold(sessionId, (hold) => revertFiles(hold, request))
    )
    if (!version) return {}
    const reverted = revertedEvent(version)
    await this.#once(sessionId, [reverted])
    return { changes: reverted.data.changes }
  }

  /** A crash may have come between a revert and its event: the model must hear of it with this message. */
  async #completeReverts(sessionId: string, transcript: Transcript): Promise<void> {
    const chat = this.chatOf(sessionId)
    if (chat.hasReverts) return
    for (const event of await untoldReverts(this.deps.sessions, sessionId, transcript))
      await this.#once(sessionId, [event])
    chat.hasReverts = true
  }

  async configure(sessionId: string, settings: CommandData<'session:configure'>): Promise<void> {
    if (settingsChange((await this.#begun(sessionId)).settings, settings) === '') return
    await appendEvents(this.deps, sessionId, [{ type: 'session:settings', data: settings }])
  }

  async revoke(sessionId: string, { server, name }: CommandData<'tool:revoke'>): Promise<void> {
    const { allowed } = await this.#begun(sessionId)
    if (!Object.hasOwn(allowed, `${server}/${name}`)) return
    await appendEvents(this.deps, sessionId, [{ type: 'tool:allow_revoked', data: { server, name } }])
  }

  /** Raises the session's limit by its original amount, and goes on with the turn that the limit ended. */
  async raiseLimit(sessionId: string): Promise<void> {
    const { usage, turnId, lastTurnEnd } = await this.#begun(sessionId)
    const { maxSessionTokens } = this.deps.options.limits
    if (maxSessionTokens === undefined) throw new AppError('conflict', 'no_limit', 'This server has no such limit.')
    const tokens = usage.inputTokens + usage.outputTokens + maxSessionTokens
    await appendEvents(this.deps, sessionId, [{ type: 'limit:raised', data: { tokens } }])
    if (turnId === null && lastTurnEnd?.reason === 'spending_limit') await this.retry(sessionId, {})
  }

  /** Shows a notice to the people in the session. */
  async notice(sessionId: string, code: string, message: string): Promise<void> {
    await appendEvents(this.deps, sessionId, [noticeOf(code, message)])
  }

  /** Ends the turn on every instance and drops the session from memory before it is removed. */
  async end(sessionId: string): Promise<void> {
    const { turnId } = await this.transcript(sessionId)
    const stopped = turnId === null ? undefined : this.#stopAnd(sessionId, () => [], { only: turnId })
    await stopped?.catch((error) => {
      // A full store can't record the end of the turn. Deleting the session makes room.
      if (!isAppError(error, 'store_unavailable')) throw error
    })
    await this.forget(sessionId)
  }

  /**
   * Ends the turn, if there is one, and appends what follows in one step. `then` is told how many waiting approvals that cancels.
   * With `only`, other turns are left alone. `why` is recorded with each cancelled approval.
   */
  async #stopAnd(
    sessionId: string,
    then: (cancelled: number, transcript: Transcript) => NewEvent[],
    { only, why }: { only?: string; why?: string } = {}
  ): Promise<void> {
    const answer = this.answerOf(sessionId)
    answer?.hold()
    try {
      for (;;) {
        const transcript = await this.#begun(sessionId)
        const { turnId } = transcript
        if (only !== undefined && turnId !== only) return
        const waiting = undecidedCalls(transcript)
        const partial = answer?.turnId === turnId ? answer.partial('stopped') : []
        const ending = turnId === null ? [] : [...partial, ...cancellations(waiting, why), endOf(turnId, 'cancelled')]
        // Someone may decide one of the calls or end the turn at this moment; then try again.
        const following = then(turnId === null ? 0 : waiting.length, transcript)
        if (!(await this.#once(sessionId, [...ending, ...following]))) continue
        answer?.stored()
        if (turnId !== null) this.chatOf(sessionId).driver.cancel()
        return
      }
    } finally {
      answer?.release()
    }
  }

  /** A session without a first model was removed or never opened: nothing may be written to it. */
  async #begun(sessionId: string): Promise<Transcript> {
    const transcript = await this.transcript(sessionId)
    if (transcript.model !== null) return transcript
    throw new AppError('not-found', 'unknown_session', 'There is no such session; open it again.')
  }

  async #once(sessionId: string, events: NewEvent[]): Promise<boolean> {
    try {
      await appendEvents(this.deps, sessionId, events)
      return true
    } catch (error) {
      if (isAppError(error, 'event_exists')) return false
      throw error
    }
  }
}
