/**
 * Runs a model's program in a chat. Owns the call of `run_code`, from its start to its result. While the program waits only for a person,
 * it gives the realm and the session back; the turn driver of any instance continues from the log. Invariant: the result is stored before
 * the log of the run is removed.
 */
import { callsOfProgram } from '../../../../contract/programs.ts'
import { type CallEntry, callOf } from '../../../../contract/transcript.ts'
import { driveRun } from '../../../code/drive-run.ts'
import { keepOutcome, keptOutcome, pieceOf } from '../../../code/long-outcome.ts'
import { newProgram } from '../../../code/new-program.ts'
import { leftBehind } from '../../../code/run-answer.ts'
import type { AttemptOptions } from '../../../code/run-attempt.ts'
import { mayPass } from '../../../code/run-failures.ts'
import { chatRunId, RunLog, type RunState } from '../../../code/run-log.ts'
import { limitedLog } from '../../../code/run-quota.ts'
import { AppError, isAppError, messageOf } from '../../../lib/errors.ts'
import type { NewEvent } from '../../../storage/event-log.ts'
import { leaseLost } from '../../../storage/store-errors.ts'
import { isOwnershipError } from '../../sandboxes/ownership-error.ts'
import { appendEvents, onceKey, resultOf } from '../../sandboxes/session-events.ts'
import { timesAsked } from '../call-targets.ts'
import type { ChatDeps } from '../chat-options.ts'
import type { RunInput } from '../toolbox.ts'
import { notRun, programStopped } from '../turn-events.ts'
import { ChatCalls, type ProgramPlace, shownText } from './program-calls.ts'
import { programContent } from './program-result.ts'

const OVER = 'The program has ended.'
const NEVER = Number.MAX_SAFE_INTEGER

export type ProgramInput = Omit<ProgramPlace, 'log' | 'program'>

export async function runProgram(place: ProgramInput, input: RunInput): Promise<void> {
  const { deps, sessionId, hold } = place
  const { call: program, signal } = input
  const { callId } = program
  const append = (events: NewEvent[]) => appendEvents(deps, sessionId, events, hold.epoch)
  if (program.startedAt === undefined)
    await append([{ type: 'tool:started', data: { callId }, key: onceKey('started', callId, 1) }])
  let log: RunLog | undefined
  try {
    const { code, from, of } = program.decision?.editedArgs ?? program.args
    if (code === undefined && from !== undefined) return await append([await readOn(place, callId, { from, of })])
    log = await openLog(place, input)
    await repair({ ...place, log, program })
    if (!log.state.end && (await drive({ ...place, log, program }, input)) === 'waiting') return
    await keepOutcome(deps.events, sessionId, callId, log.state)
    await finish(place, callId, programContent(log.state))
  } catch (error) {
    // The server is stopping, or another instance has the session: the run goes on from its log.
    if (isOwnershipError(error) || isAppError(signal.reason, 'server_stopped')) throw error
    // No engine, for example. What the program has done must not be lost: the turn tries again until the person stops it.
    if (!signal.aborted && log && log.state.calls.size > 0 && isAppError(error) && mayPass(error)) throw paused(error)
    const content = [{ type: 'text', text: messageOf(error) }]
    const left = log ? leftBehind(log.state) : []
    await append([signal.aborted ? programStopped(callId, left) : resultOf(callId, { isError: true, content })])
  }
  await forgetProgram(deps, sessionId)
}

/** The result of a call that asks for more of what the last program returned or printed. */
async function readOn({ deps, sessionId }: ProgramInput, callId: string, { from, of }: Record<string, unknown>) {
  const piece = pieceOf(await keptOutcome(deps.events, sessionId), from, of)
  return resultOf(callId, { isError: false, content: [{ type: 'text', text: JSON.stringify(piece) }] })
}

function paused(cause: AppError): AppError {
  const message = `The program can't continue now, and is tried again. ${cause.message}`
  return new AppError('unavailable', 'code_paused', message, { cause })
}

/** Removes the log of the session's last program. Its result is in the session's log. */
export async function forgetProgram({ events }: Pick<ChatDeps, 'events'>, sessionId: string): Promise<void> {
  await RunLog.remove(events, chatRunId(sessionId))
}

/** Stores the result, and closes the calls that the program did not wait for. */
async function finish(
  { deps, sessionId, hold, conversation }: ProgramInput,
  callId: string,
  content: ReturnType<typeof programContent>
): Promise<void> {
  for (;;) {
    const { calls } = await conversation.refresh()
    const open = callsOfProgram(calls, callId).filter(({ result, startedAt }) => !result && startedAt === undefined)
    const left = open.map((call) => (call.decision ? notRun(call.callId, new Error(OVER)) : withdrawn(call)))
    try {
      await appendEvents(deps, sessionId, [...left, resultOf(callId, content)], hold.epoch)
      return
    } catch (error) {
      // Somebody has decided about one of these calls at this moment, or the turn was stopped.
      const { calls: now } = await conversation.refresh()
      if (!isAppError(error, 'event_exists') || callOf({ calls: now }, callId)?.result) throw error
    }
  }
}

function withdrawn(call: CallEntry): NewEvent {
  const key = onceKey('decision', call.callId, timesAsked(call))
  const data = { callId: call.callId, approved: false, by: 'cancel', reason: OVER }
  return { type: 'tool:approval_resolved', data, key }
}

/** The log of this run. The log of an earlier program is removed. */
async function openLog({ deps, sessionId }: ProgramInput, { call }: RunInput): Promise<RunLog> {
  const runId = chatRunId(sessionId)
  const events = limitedLog(deps.events, () => deps.checkQuota(sessionId).then(() => undefined, asAppError))
  const known = await RunLog.load(events, runId).catch((error: unknown) => {
    if (isAppError(error, 'unknown_run')) return undefined
    throw error
  })
  if (known?.state.program?.callId === call.callId) return known
  await RunLog.remove(events, runId)
  const program = newProgram(call.decision?.editedArgs ?? call.args)
  return RunLog.create(events, runId, { ...program, callId: call.callId })
}

function asAppError(error: unknown): AppError {
  if (isAppError(error)) return error
  throw error
}

/** Returns when the run has ended, or waits for a person. */
async function drive(place: ProgramPlace, { signal, onOutput }: RunInput): Promise<'ended' | 'waiting'> {
  const { deps, log, sessionId } = place
  const { programs, logger } = deps
  if (!programs) throw new AppError('unavailable', 'code_off', 'Programs are switched off.')
  const calls = new ChatCalls(place)
  const print = (text: string) => onOutput({ stream: 'stdout', text: `${text}\n` })
  const options: AttemptOptions = {
    ...{ log, calls, logger, ...programs, cardExpiresAt: () => NEVER, onProgress: print, onPrinted: print },
    openRealm: (stop) => programs.openRealm(sessionId, { signal: stop, onQueued: print }),
    inbox: {
      post: async () => ({ key: '', value: null }),
      answerTo: (id) => calls.answerTo(id),
      take: async () => {}
    },
    onReleased: (realm) =>
      void realm.stop().catch((error) => logger.warn({ err: error }, 'A realm could not be stopped.')),
    onWaiting: () => {}
  }
  const end = await driveRun(options, signal)
  if (end === 'ended' || end === 'waiting') return end
  signal.throwIfAborted()
  // The instance that holds the session goes on from the log.
  throw leaseLost()
}

/** A result that the program got is in its log first. If the server ended then, the session's log has no result yet. */
async function repair({ deps, sessionId, hold, conversation, log, program }: ProgramPlace): Promise<void> {
  const { calls } = await conversation.refresh()
  const missing = callsOfProgram(calls, program.callId).filter((call) => !call.result && call.startedAt !== undefined)
  for (const { callId, program: origin } of missing) {
    const text = shownOutcome(log.state, origin?.n ?? 0)
    if (text === undefined) continue
    const { isError, shown } = text
    const result = resultOf(callId, { isError, content: [{ type: 'text', text: shown }] })
    await appendEvents(deps, sessionId, [result], hold.epoch).catch((error) => {
      if (!isAppError(error, 'event_exists')) throw error
    })
  }
}

function shownOutcome({ calls }: RunState, n: number): { isError: boolean; shown: string } | undefined {
  const outcome = calls.get(n)?.done?.outcome
  if (!outcome) return undefined
  if (!outcome.ok) return { isError: true, shown: outcome.message }
  const text = typeof outcome.value === 'string' ? outcome.value : (JSON.stringify(outcome.value) ?? '')
  return { isError: false, shown: shownText(text) }
}
