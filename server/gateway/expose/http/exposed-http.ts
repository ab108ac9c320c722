import {
  type ClientCapabilities,
  createMcpHandler,
  InMemoryServerEventBus,
  isLegacyRequest,
  type ServerEventBus
} from '@modelcontextprotocol/server'
import type { Caller, OwnerOf } from '../../../calls/caller.ts'
import type { PeerNotification } from '../../../connections/wire/call-input.ts'
import type { Logger } from '../../../lib/logger.ts'
import { MAX_BODY_BYTES } from '../../max-body-bytes.ts'
import type { FastCallRequest } from '../client-connection.ts'
import { createExposedServer } from '../create-exposed-server.ts'
import type { Exposed } from '../exposed.ts'
import { Lanes } from '../lanes.ts'
import { listenOf } from '../listen-filter.ts'
import { watchWhile } from '../watch-while.ts'
import { bodyEnd } from './body-end.ts'
import { type CallFast, type FetchOptions, HttpSessions, type HttpSessionsOptions } from './http-sessions.ts'

export interface ExposedHttp {
  /** The way to make a call of this session without the SDK, if there is one. */
  fastCall(session: string, owner: string, call: FastCallRequest): CallFast | undefined
  fetch(request: Request, options?: FetchOptions): Promise<Response>
  close(): Promise<void>
}

/**
 * The pass-through mode over HTTP. Clients of the older revisions get a session, because their servers can ask them questions;
 * those of the newer one are served request by request.
 */
export function openExposedHttp(
  expose: () => Promise<Exposed>,
  logger: Logger,
  ownerOf: OwnerOf,
  timing: Pick<HttpSessionsOptions, 'leftMs'> = {}
): ExposedHttp {
  const onerror = (error: Error) => logger.debug({ err: error }, 'gateway request')
  const bus = new InMemoryServerEventBus(onerror)
  let opened: { exposed: Exposed; lanes: Lanes; close(): void } | undefined
  const open = async () => {
    const exposed = await expose()
    opened ??= openShared(exposed, bus)
    return opened
  }
  const callerOf = ({ headers }: Request): Caller => ({
    owner: ownerOf(headers.get('cookie') ?? undefined),
    door: 'http'
  })
  const sessions = new HttpSessions({ open: expose, logger, maxBodyBytes: MAX_BODY_BYTES, ...timing })
  const modern = createMcpHandler(
    async ({ requestInfo }) => {
      const { exposed, lanes } = await open()
      const caller = requestInfo ? callerOf(requestInfo) : { owner: ownerOf(undefined), door: 'http' as const }
      await exposed.discoverServers(caller, requestInfo?.signal ?? AbortSignal.timeout(DISCOVER_MS))
      return createExposedServer({ exposed, lanes, caller, era: 'modern' })
    },
    { legacy: 'reject', bus, maxRequestBodySize: MAX_BODY_BYTES, onerror }
  )
  return {
    fastCall: (session, owner, call) => sessions.fastCall(session, owner, call),
    async fetch(request, options = {}) {
      const { parsedBody } = options
      const caller = callerOf(request)
      const isOld = await isLegacyRequest(request, parsedBody, { maxRequestBodySize: MAX_BODY_BYTES })
      if (isOld) return sessions.fetch(request, caller, options)
      const { uris = [] } = listenOf(parsedBody) ?? {}
      const response = await modern.fetch(request, options)
      // Only a stream has an end to wait for; a refused request watches nothing.
      const isStream = response.headers.get('content-type') === 'text/event-stream'
      if (uris.length === 0 || !isStream) return response
      const ended = new AbortController()
      const answer = bodyEnd(response, options.gone ?? request.signal, () => ended.abort())
      const { exposed, lanes } = await open()
      const { lane } = lanes.borrow({ server: '', caller, capabilities: {}, isModern: false, alone: false })
      await watchWhile(exposed, lane, uris, ended.signal)
      return answer
    },
    async close() {
      await modern.close()
      await sessions.close()
      opened?.close()
    }
  }
}

function openShared(exposed: Exposed, bus: ServerEventBus) {
  const open = (of: Caller, capabilities: ClientCapabilities) =>
    exposed.openLane(of, capabilities, { tell: (notification) => publish(bus, notification) })
  const lanes = new Lanes(open, { isShared: true })
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

const DISCOVER_MS = 10_000

/** Publishes notifications that belong to no request. */
function publish(bus: ServerEventBus, { method, params = {} }: PeerNotification): void {
  if (method === 'notifications/prompts/list_changed') bus.publish({ kind: 'prompts_list_changed' })
  if (method === 'notifications/resources/list_changed') bus.publish({ kind: 'resources_list_changed' })
  if (method === 'notifications/resources/updated') bus.publish({ kind: 'resource_updated', uri: String(params.uri) })
}
