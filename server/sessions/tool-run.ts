import type { OutputChunk } from '../../workspace-server/protocol.ts'
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import type { ToolResult } from '../sandbox/port.ts'
import type { LiveSession } from './live-session.ts'
import { unknownOutcome } from './session-events.ts'

export interface ToolCall {
  callId: string
  name: string
  args: Record<string, unknown>
  signal?: AbortSignal | undefined
  timeoutMs?: number
  onOutput?: ((chunk: OutputChunk) => void) | undefined
}

/** Longer than the longest command may take, so that the server inside gives the answer. */
const DEFAULT_TIMEOUT_MS = 660_000
const READ_ONLY = new Set(['read_file', 'list_files'])

/**
 * Runs one call in a session that the caller has entered, and leaves its trace: started before anything is sent, the result
 * after the changed files are safe. A call whose answer was lost is recorded as unknown and never repeated.
 */
export async function runTool(session: LiveSession, call: ToolCall): Promise<ToolResult> {
  const { callId, name, args, signal, timeoutMs = DEFAULT_TIMEOUT_MS, onOutput } = call
  await session.openSandbox(signal) // a server that died since the last call is repaired before this one starts
  const epoch = session.epoch
  await session.events.append([{ type: 'tool:started', data: { callId, name } }], epoch)
  session.runningCalls.add(callId)
  try {
    const result = await session.sandbox.connection.callTool(name, args, { signal, timeoutMs, onOutput })
    if (!READ_ONLY.has(name)) await session.sandbox.checkpoint()
    const { content, isError = false } = result
    await session.events.appendPatiently([{ type: 'tool:result', data: { callId, isError, content } }], epoch)
    return result
  } catch (error) {
    throw await recordFailure(session, callId, epoch, error)
  } finally {
    session.runningCalls.delete(callId)
  }
}

async function recordFailure(session: LiveSession, callId: string, epoch: number, error: unknown): Promise<unknown> {
  const lost = isAppError(error, 'connection_lost')
  const content = [{ type: 'text', text: messageOf(error) }]
  const event = lost ? unknownOutcome(callId) : { type: 'tool:result', data: { callId, isError: true, content } }
  try {
    await session.events.appendPatiently([event], epoch)
  } catch {
    // The next owner finds the call started and not finished, and says so.
  }
  if (!lost) return error
  const message = 'The sandbox was lost while this ran; whether it took effect is unknown, and it was not run again.'
  return new AppError('unavailable', 'outcome_unknown', message, { cause: error })
}
