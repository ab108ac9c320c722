import {
  createMcpHandler,
  InMemoryServerEventBus,
  isLegacyRequest,
  type ServerEventBus
} from '@modelcontextprotocol/server'
import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Caller } from '../../tools/caller.ts'
import type { PeerNotification } from '../../tools/connections/peer.ts'
import { MAX_BODY_BYTES, type OwnerOf } from '../http-door.ts'
import type { ClientLane } from './client-lane.ts'
import { createExposedServer } from './create-exposed-server.ts'
import type { Exposed } from './exposed.ts'
import { HttpSessions } from './http-sessions.ts'
import { SharedLanes } from './lanes.ts'
import { listenOf } from './listen-filter.ts'
import { watchOn } from './pass-on.ts'

export interface ExposedHttp {
  fetch(request: Request, options?: { parsedBody?: unknown }): Promise<Response>
  close(): Promise<void>
}

/**
 * The pass-through mode over HTTP. Clients of the older revisions get a session, because their servers can ask them back; those of
 * the new one are served request by request.
 */
export function openExposedHttp(expose: () => Promise<Exposed>, logger: Logger, ownerOf: OwnerOf): ExposedHttp {
  const onerror = (error: Error) => logger.debug({ err: error }, 'gateway request')
  const bus = new InMemoryServerEventBus(onerror)
  let opened: { exposed: Exposed; lanes: SharedLanes; close(): void } | undefined
  const open = async () => {
    const exposed = await expose()
    opened ??= openShared(exposed, bus)
    return opened
  }
  const callerOf = ({ headers }: Request): Caller => ({
    owner: ownerOf(headers.get('cookie') ?? undefined),
    door: 'http'
  })
  const sessions = new HttpSessions({ open: expose, logger, maxBodyBytes: MAX_BODY_BYTES })
  const modern = createMcpHandler(
    async ({ requestInfo }) => {
      const { exposed, lanes } = await open()
      const caller = requestInfo ? callerOf(requestInfo) : { owner: ownerOf(undefined), door: 'http' as const }
      await exposed.meet(caller, requestInfo?.signal ?? AbortSignal.timeout(MEET_MS))
      return createExposedServer({ exposed, lanes, caller, era: 'modern' })
    },
    { legacy: 'reject', bus, maxRequestBodySize: MAX_BODY_BYTES, onerror }
  )
  return {
    async fetch(request, options = {}) {
      const { parsedBody } = options
      const caller = callerOf(request)
      const isOld = await isLegacyRequest(request, parsedBody, { maxRequestBodySize: MAX_BODY_BYTES })
      if (isOld) return sessions.fetch(request, caller, options)
      const { uris = [] } = listenOf(parsedBody) ?? {}
      if (uris.length > 0) {
        const { exposed, lanes } = await open()
        const { lane } = lanes.borrow({ server: '', caller, capabilities: {}, isModern: false, alone: false })
        await watchWhile(exposed, lane, uris, request.signal)
      }
      return modern.fetch(request, options)
    },
    async close() {
      await modern.close()
      await sessions.close()
      opened?.close()
    }
  }
}

function openShared(exposed: Exposed, bus: ServerEventBus) {
  const lanes = new SharedLanes((of, capabilities) =>
    exposed.openLane(of, capabilities, { tell: (notification) => publish(bus, notification) })
  )
  const stopHearing = exposed.core.index.onChange((server) => {
    if (exposed.shows(server)) bus.publish({ kind: 'tools_list_changed' })
  })
  const close = () => {
    stopHearing()
    lanes.close()
    exposed.close()
  }
  return { exposed, lanes, close }
}

const MEET_MS = 10_000

/** The subscriptions of one stream, until its client leaves. */
async function watchWhile(exposed: Exposed, lane: ClientLane, uris: string[], signal: AbortSignal): Promise<void> {
  for (const uri of uris) {
    const [target] = exposed.resourceTargets(uri)
    if (target === undefined) continue
    try {
      await watchOn(exposed, lane, target, signal)
      signal.addEventListener('abort', () => void lane.unwatch(target.server, target.name).catch(() => {}), {
        once: true
      })
    } catch (error) {
      exposed.logger.debug({ server: target.server }, `A subscription failed: ${messageOf(error)}`)
    }
  }
}

/** What concerns no request goes to whoever listens for it. */
function publish(bus: ServerEventBus, { method, params = {} }: PeerNotification): void {
  if (method === 'notifications/prompts/list_changed') bus.publish({ kind: 'prompts_list_changed' })
  if (method === 'notifications/resources/list_changed') bus.publish({ kind: 'resources_list_changed' })
  if (method === 'notifications/resources/updated') bus.publish({ kind: 'resource_updated', uri: String(params.uri) })
}
