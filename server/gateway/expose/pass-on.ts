import { ProtocolError, ProtocolErrorCode, type ServerContext } from '@modelcontextprotocol/server'
import type { RawResult } from '../../connections/wire/call-input.ts'
import { isAppError } from '../../lib/errors.ts'
import { wireError } from '../../lib/web/wire-error.ts'
import { withNamedElicitations } from '../asking/name-asker.ts'
import { runRequest } from '../execute/run-request.ts'
import type { ClientLane } from './client-lane.ts'
import type { Exposed } from './exposed.ts'
import type { ExposedFace, Job } from './exposed-face.ts'
import type { Target } from './exposed-names.ts'

/** Methods that the newer revision may answer with a question. */
const MAY_ASK = new Set(['prompts/get', 'resources/read'])

/** Forwards a request to one server unchanged, and returns its answer or error. */
export async function passOn(
  face: ExposedFace,
  server: string,
  context: ServerContext,
  method: string,
  params: Record<string, unknown>
): Promise<RawResult> {
  const { core, logger } = face.exposed
  try {
    const { _meta: _, ...own } = params
    const job: Job = ({ meta, retry, prompter: __, ...rest }) => {
      const all = { ...own, ...retry, ...(meta ? { _meta: meta } : {}) }
      const passed = { server, method, params: own, caller: rest.caller }
      return runRequest(core, passed, () => core.connections.request(server, { method, params: all, ...rest }))
    }
    return MAY_ASK.has(method) ? await face.serve(server, context, own, job) : await face.plainly(server, context, job)
  } catch (error) {
    throw passOnError(server, error) ?? inOurWords(error, logger)
  }
}

/** A subscription is a continued read: the same rules apply, and it is recorded. */
export async function watchOn(
  { core }: Exposed,
  lane: ClientLane,
  { server, name: uri }: Target,
  signal: AbortSignal,
  caller = lane.caller
): Promise<void> {
  const passed = { server, method: 'resources/subscribe', params: { uri }, caller }
  await runRequest(core, passed, () => lane.watch(server, uri, signal))
}

/** The server's own error, with its code and data. */
export function passOnError(server: string, error: unknown): Error | undefined {
  const cause = isAppError(error, 'child_refused') ? error.cause : error
  if (cause instanceof ProtocolError) return withNamedElicitations(server, cause)
  return cause !== error && cause instanceof Error ? cause : undefined
}

export function ofServer(exposed: Exposed, target: Target | undefined, shown: string): Target {
  if (target !== undefined && exposed.servers().includes(target.server)) return target
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is nothing named "${shown.slice(0, 200)}".`)
}

export function inOurWords(error: unknown, logger: Exposed['logger']): ProtocolError {
  const { code, message } = wireError(error, logger)
  return new ProtocolError(ProtocolErrorCode.InternalError, message, { code })
}
