/**
 * Where the path of a sandbox tool leads. A card shows it, the approval is bound to it, and the sandbox checks it again when it
 * acts. Calls that nobody was asked about (an approval rule, "always allow") are not bound to a target.
 */
import { posix } from 'node:path'
import type { EventData } from '../../../contract/events.ts'
import { type PathTarget, pathOf } from '../../../contract/path-target.ts'
import type { CallEntry } from '../../../contract/transcript.ts'
import { type ExpectedTarget, INSIDE } from '../../../workspace-server/protocol.ts'
import type { AgentEvent } from '../../agent/model-step.ts'
import { approvalHash } from '../../calls/offered-tool.ts'
import { type AppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { notRun } from './turn-events.ts'

type Asked = EventData<'tool:approval_required'>

/** After this many tries, something is swapping the path on purpose. */
export const MAX_TIMES_ASKED = 5
const RESOLVE_MS = 15_000

/** The path from its text alone, if the sandbox could not be asked. */
function uncheckedTarget(path: string): PathTarget {
  return { path: posix.resolve(INSIDE.root, path).slice(0, 8192), is: 'unchecked' }
}

export interface ResolveOptions {
  sessionId: string
  hold: HeldSession
  signal: AbortSignal
  logger: Logger
}

/**
 * Adds targets to the calls of a step that need approval. Opens the sandbox if necessary: an approval would do so too, and so
 * does the page for its comparison. If it can't be opened, the cards say that the path was not checked, and the sandbox checks it
 * when the call runs.
 */
export async function withTargets(events: AgentEvent[], look: ResolveOptions): Promise<AgentEvent[]> {
  const decided = new Set(events.map(({ type, data }) => (type === 'tool:approval_resolved' ? data.callId : undefined)))
  const paths = new Map<string, string>()
  for (const { type, data } of events) {
    const path = type === 'tool:approval_required' && !decided.has(data.callId) ? pathOf(data, data.args) : undefined
    if (type === 'tool:approval_required' && path !== undefined) paths.set(data.callId, path)
  }
  if (paths.size === 0) return events
  const targets = await resolvePaths([...paths.values()], look)
  const byCall = new Map([...paths.keys()].map((callId, at) => [callId, targets[at]]))
  return events.map((event) => {
    const target = event.type === 'tool:approval_required' ? byCall.get(event.data.callId) : undefined
    if (event.type !== 'tool:approval_required' || !target) return event
    return { type: event.type, data: bound(look.sessionId, { ...event.data, target }) }
  })
}

async function resolvePaths(
  paths: string[],
  { sessionId, hold, signal, logger }: ResolveOptions
): Promise<PathTarget[]> {
  try {
    return await resolveIn(hold, paths, signal)
  } catch (error) {
    if (signal.aborted || isOwnershipError(error)) throw error
    logger.warn({ err: error, sessionId }, `Paths of waiting calls were not resolved: ${messageOf(error)}`)
    return paths.map(uncheckedTarget)
  }
}

export function resolveIn(hold: HeldSession, paths: string[], signal?: AbortSignal): Promise<PathTarget[]> {
  const deadline = { what: 'the sandbox to resolve paths', ms: RESOLVE_MS, signal }
  return withDeadline(deadline, async (inner) => (await hold.workspace(inner)).resolve(paths))
}

/** The target that the sandbox must find when the call runs; undefined means any. */
export function expectedTarget(call: CallEntry): ExpectedTarget | undefined {
  const { decision, name } = call
  if (decision?.by !== 'human') return undefined
  const target = decision.editedArgs ? decision.editedTarget : call.target
  if (!target) return undefined
  // Reading is always safe. A write whose target could not be checked beforehand must not replace anything.
  if (name !== 'write_file') return { path: target.path }
  if (target.is === 'unchecked') return { path: target.path, is: 'new' }
  // Nothing is lost by adding to a file, and a growing log would ask again and again.
  const isAppend = (decision.editedArgs ?? call.args).append === true
  const hash = isAppend ? undefined : (decision.seen ?? target.hash)
  return { path: target.path, is: target.is, ...(target.is === 'file' && hash !== undefined && { hash }) }
}

/**
 * The target that edited arguments are bound to: the one that the person was shown, or the card's own if the path is the same.
 */
export function editedTarget(
  call: CallEntry,
  args: Record<string, unknown>,
  shown: PathTarget | undefined
): PathTarget | undefined {
  const path = pathOf(call, args)
  if (path === undefined) return undefined
  if (shown) return shown
  return path === pathOf(call, call.args) ? call.target : uncheckedTarget(path)
}

/** The event for a call whose path no longer leads to what the person was shown: nothing was done, and they decide again. */
export function askedAgain(sessionId: string, call: CallEntry, changed: AppError): NewEvent {
  const {
    decision,
    requestedAt: _at,
    startedAt: _started,
    result: _result,
    previewRefused: _refused,
    again,
    ...rest
  } = call
  const times = timesAsked(call) + 1
  if (times > MAX_TIMES_ASKED) return notRun(call.callId, changed)
  const isEdited = decision?.editedArgs !== undefined || again?.isEdited === true
  // The adapter has validated this part of the sandbox's answer.
  const target = changed.details.target as PathTarget
  const expected = expectedTarget(call)
  const isSameFile = target.path === expected?.path && target.is === expected?.is
  const what = isSameFile ? 'the file has other content now' : 'its path now leads to something else'
  const reason = `You approved this call, but ${what}. Nothing was done.`
  const data = { ...rest, args: decision?.editedArgs ?? call.args, target, again: { times, reason, isEdited } }
  return { type: 'tool:approval_required', data: bound(sessionId, data), key: `again-${times}:${call.callId}` }
}

export function timesAsked(call: CallEntry): number {
  return call.again?.times ?? 1
}

function bound(sessionId: string, data: Asked): Asked {
  const { callId, definition, args, target } = data
  return { ...data, hash: approvalHash({ sessionId, callId, definition, args, target }) }
}
