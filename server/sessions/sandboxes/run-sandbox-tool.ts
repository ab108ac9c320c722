import { commandEnding, type EventData, replaced } from '../../../contract/events.ts'
import { mayHaveRun } from '../../audit/call-end.ts'
import { boundContent } from '../../calls/bound-content.ts'
import type { ToolCallInput } from '../../calls/tool-source.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { ToolResult } from '../../sandbox/port.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import type { LiveSession } from './live-session.ts'
import { onceKey, resultOf, unknownOutcome } from './session-events.ts'

export type ToolCall = Omit<ToolCallInput, 'signal' | 'caller'> & { signal?: AbortSignal | undefined }

/** A result, and what is stored with it. */
export type Recorded = ToolResult & { more?: Pick<EventData<'tool:result'>, 'ending' | 'replaced' | 'log'> }

type Journaled = Pick<LiveSession, 'epoch' | 'events' | 'runningCalls'>

/** Longer than the longest command may take, so that the server inside gives the answer. */
const TIMEOUT_MS = 660_000
const STOPPED_TEXT = 'The turn was stopped while this ran; it may have run in part.'
const READ_ONLY = new Set(['read_file', 'list_files'])

/** Runs one call in the sandbox of a session that the caller has entered; the changed files are safe before the result is told. */
export async function runSandboxTool(session: LiveSession, call: ToolCall): Promise<ToolResult> {
  const { callId, times = 1, name, args, ...rest } = call
  await session.openSandbox(call.signal) // a server that died since the last call is repaired before this one starts
  const run = async () => {
    const { connection } = session.sandbox
    const result = await connection.callTool(name, args, { ...rest, timeoutMs: TIMEOUT_MS }).catch((error) => {
      // What it has written until then counts too; whoever stopped it does not wait for that.
      if (connection.isOpen && !READ_ONLY.has(name)) void session.sandbox.checkpoint()
      throw error
    })
    const unsaved = READ_ONLY.has(name) ? undefined : await session.sandbox.checkpoint()
    await session.sandbox.endIfTampered()
    const ending = name === 'execute_command' ? commandEnding.safeParse(result.structuredContent).data : undefined
    const before = name === 'write_file' ? replaced.safeParse(result.structuredContent?.replaced).data : undefined
    // It has succeeded, but should the sandbox be gone now, its files are gone too: the model has to know.
    const content = unsaved === undefined ? result.content : [...result.content, { type: 'text', text: unsaved }]
    return { ...result, content, more: { ...(ending && { ending }), ...(before && { replaced: before }) } }
  }
  return journal(session, callId, run, times)
}

/**
 * Leaves a call's trace in the log: started before anything is sent, its result afterwards. A call whose answer was lost is
 * recorded as unknown and never repeated.
 */
export async function journal(
  session: Journaled,
  callId: string,
  run: () => Promise<Recorded>,
  times = 1
): Promise<ToolResult> {
  const { epoch, events } = session
  await events.append([{ type: 'tool:started', data: { callId }, key: onceKey('started', callId, times) }], epoch)
  session.runningCalls.add(callId)
  try {
    const result = await run().catch(async (error) => {
      throw await recordFailure(session, callId, epoch, error)
    })
    const { isError = false, content, more } = result
    const kept = boundContent(await events.keepImages(content))
    const event = resultOf(callId, { isError, content: kept, ...more })
    // If this fails, nothing is recorded in its place: whoever looks next finds the call started and not finished, and says so.
    await events.appendResult(event, epoch)
    return result
  } finally {
    session.runningCalls.delete(callId)
  }
}

async function recordFailure(session: Journaled, callId: string, epoch: number, error: unknown): Promise<unknown> {
  // It did not run, and the human is asked again: that is written by whoever carries the turn on.
  if (isAppError(error, 'target_changed')) return error
  try {
    await session.events.appendResult(failureOf(callId, error), epoch)
  } catch {
    // As above.
  }
  if (!isAppError(error, 'connection_lost') || error.details.sent === false) return error
  const message = 'The sandbox was lost while this ran; whether it took effect is unknown, and it was not run again.'
  return new AppError('unavailable', 'outcome_unknown', message, { cause: error })
}

function failureOf(callId: string, error: unknown): NewEvent {
  if (isAppError(error, 'server_stopped')) return unknownOutcome(callId, messageOf(error), 'server')
  if (mayHaveRun(error)) return unknownOutcome(callId, messageOf(error))
  const isStopped = isAppError(error, 'cancelled')
  const text = isStopped ? STOPPED_TEXT : messageOf(error)
  const content = [{ type: 'text', text }]
  return resultOf(callId, { isError: true, content, ...(isStopped && { interruptedBy: 'person' }) })
}
