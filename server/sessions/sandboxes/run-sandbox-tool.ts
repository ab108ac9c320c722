import { commandEnding, type EventData, replaced } from '../../../contract/events.ts'
import { mayHaveRun, notBegun } from '../../audit/call-end.ts'
import { boundContent } from '../../calls/bound-content.ts'
import type { ToolCallInput } from '../../calls/tool-source.ts'
import { tailOf } from '../../lib/cut-text.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { ToolResult } from '../../sandbox/port.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { summaryOf } from '../changes/changed-files.ts'
import type { LiveSession } from './live-session.ts'
import { onceKey, resultOf, unknownOutcome } from './session-events.ts'

export type ToolCall = Omit<ToolCallInput, 'signal' | 'caller'> & { signal?: AbortSignal | undefined }

/** A result, and what is stored with it. */
export type Recorded = ToolResult & {
  more?: Pick<EventData<'tool:result'>, 'ending' | 'replaced' | 'log' | 'changes' | 'isForked' | 'leftRunning'>
}

type Journaled = Pick<LiveSession, 'epoch' | 'events' | 'runningCalls'>

/** Longer than the longest command may take, so that the server inside gives the answer. */
export const TOOL_TIMEOUT_MS = 660_000
const STOPPED_TEXT = 'The turn was stopped while this ran; it may have run in part.'
const READ_ONLY = new Set(['read_file', 'list_files'])
/** Maximum length of the output that is kept of an interrupted command, counted from its end. */
const KEPT_CHARS = 128 * 1024

/** Runs one call in the sandbox of a session that the caller has entered; the changed files are safe before the result is told. */
export async function runSandboxTool(session: LiveSession, call: ToolCall): Promise<ToolResult> {
  const { callId, times = 1, name, args, settle, ...rest } = call
  const heard = hearOutput(call.onOutput)
  await session.openForCall(call.signal) // a server that died since the last call is repaired before this one starts
  call.signal?.throwIfAborted()
  const run = async () => {
    const { connection } = session.sandbox
    const version = { id: `call:${callId}`, about: { by: 'call', callId } } as const
    const result = await connection
      .callTool(name, args, { ...rest, ...heard, timeoutMs: TOOL_TIMEOUT_MS })
      .catch((error) => {
        // Files that it has written until then are stored too. The person who stopped it does not wait for that.
        if (connection.isOpen && !READ_ONLY.has(name)) void session.sandbox.checkpoint({ version })
        throw error
      })
    const unsaved = READ_ONLY.has(name) ? undefined : await session.sandbox.checkpoint({ version })
    const stored = session.sandbox.version(version.id)
    const made = stored && summaryOf(stored)
    await session.sandbox.endIfTampered()
    // It has succeeded, but should the sandbox be gone now, its files are gone too: the model has to know.
    const content = unsaved === undefined ? result.content : [...result.content, { type: 'text', text: unsaved }]
    return { ...result, content, more: { ...moreOf(name, result), ...(made && { changes: made }) } }
  }
  return journal(session, callId, settled(run, settle), { times, outputSoFar: heard.outputSoFar })
}

/** Lets the caller see the whole result before it is recorded. */
export function settled(run: () => Promise<Recorded>, settle: ToolCallInput['settle']): () => Promise<Recorded> {
  if (!settle) return run
  return async () => {
    const result = await run()
    return { ...result, content: await settle(result) }
  }
}

/** The fields that are stored with a result besides its content. */
export function moreOf(
  name: string,
  { structuredContent }: ToolResult
): Pick<EventData<'tool:result'>, 'ending' | 'replaced'> {
  const ending = name === 'execute_command' ? commandEnding.safeParse(structuredContent).data : undefined
  const before = name === 'write_file' ? replaced.safeParse(structuredContent?.replaced).data : undefined
  return { ...(ending && { ending }), ...(before && { replaced: before }) }
}

/** Passes output on and keeps its end, because an interrupted call has no result that would contain it. */
function hearOutput(onOutput: ToolCall['onOutput']) {
  let [text, omitted] = ['', 0]
  const cut = () => {
    omitted += Math.max(0, text.length - KEPT_CHARS)
    text = tailOf(text, KEPT_CHARS)
  }
  return {
    onOutput: (chunk: Parameters<NonNullable<typeof onOutput>>[0]) => {
      text += chunk.text
      if (text.length > 2 * KEPT_CHARS) cut()
      onOutput?.(chunk)
    },
    outputSoFar: () => {
      cut()
      return omitted === 0 ? text : `[… ${omitted} characters left out …]\n${text}`
    }
  }
}

/**
 * Leaves a call's trace in the log: started before anything is sent, its result afterwards. A call whose answer was lost is
 * recorded as unknown and never repeated.
 */
export async function journal(
  session: Journaled,
  callId: string,
  run: () => Promise<Recorded>,
  { times = 1, outputSoFar = () => '' }: { times?: number | undefined; outputSoFar?(): string } = {}
): Promise<ToolResult> {
  const { epoch, events } = session
  const started = { type: 'tool:started', data: { callId }, key: onceKey('started', callId, times) }
  await events.append([started], epoch).catch((error) => {
    throw notBegun(error)
  })
  session.runningCalls.add(callId)
  try {
    const result = await run().catch(async (error) => {
      throw await recordFailure(session, epoch, error, () => failureOf(callId, error, outputSoFar()))
    })
    const { isError = false, content, more } = result
    const kept = boundContent(await events.keepImages(content))
    const event = resultOf(callId, { isError, content: kept, ...more })
    // If this fails, nothing is recorded in its place: the next reader of the log finds the call started and not finished, and reports it.
    await events.appendResult(event, epoch)
    return result
  } finally {
    session.runningCalls.delete(callId)
  }
}

async function recordFailure(
  session: Journaled,
  epoch: number,
  error: unknown,
  failure: () => NewEvent
): Promise<unknown> {
  // It did not run, or may run elsewhere, and is requested again: the driver that continues the turn writes that.
  if (isAppError(error, 'target_changed') || isAppError(error, 'alternative_found')) return error
  try {
    await session.events.appendResult(failure(), epoch)
  } catch {
    // As above.
  }
  if (!isAppError(error, 'connection_lost') || error.details.sent === false) return error
  const message = 'The sandbox was lost while this ran; whether it took effect is unknown, and it was not run again.'
  return new AppError('unavailable', 'outcome_unknown', message, { cause: error })
}

/** The call's output until then is kept, followed by a sentence that says what happened. */
function failureOf(callId: string, error: unknown, output: string): NewEvent {
  const before = output === '' ? [] : [{ type: 'text', text: output.toWellFormed() }]
  if (isAppError(error, 'server_stopped'))
    return unknownOutcome(callId, messageOf(error), { interruptedBy: 'server', before })
  if (mayHaveRun(error)) return unknownOutcome(callId, messageOf(error), { before })
  const isStopped = isAppError(error, 'cancelled')
  const text = isStopped ? STOPPED_TEXT : messageOf(error)
  const content = [...before, { type: 'text', text }]
  return resultOf(callId, { isError: true, content, ...(isStopped && { interruptedBy: 'person' }) })
}
