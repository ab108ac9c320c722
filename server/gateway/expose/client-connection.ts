import type { Progress, RequestId, Server } from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import type { PeerNotification, PeerRequest, RawResult } from '../../connections/wire/call-input.ts'
import { rawResult } from '../../connections/wire/raw-result.ts'
import { callTool, createExposedServer } from './create-exposed-server.ts'
import type { Exposed } from './exposed.ts'
import { ExposedFace } from './exposed-face.ts'
import { Lanes, type OpenLane } from './lanes.ts'

export interface ClientConnection {
  server: Server
  lanes: Lanes
  /** Whether `call` can be used: only if client and server speak an older revision, because the SDK runs the rounds of the newer one. */
  isPlain(tool: string): boolean
  /** Calls a tool without the SDK. Rejects with the error for the client. */
  call(call: FastCallRequest, context: FastContext): Promise<RawResult>
}

export interface FastCallRequest {
  id: RequestId
  name: string
  args: Record<string, unknown>
  meta: Record<string, unknown>
  progressToken?: string | number
}

interface FastContext {
  signal: AbortSignal
  onProgress?: (progress: Progress) => void
}

/**
 * A client that stays connected: notifications are sent to it, and its lanes are closed with it. `mayShare`: there are others like it.
 */
export function connectClient(
  exposed: Exposed,
  caller: Caller,
  era: 'legacy' | 'modern',
  { mayShare = false } = {}
): ClientConnection {
  const news = (notification: PeerNotification) => void server.notification(notification).catch(() => {})
  const open: OpenLane = (of, capabilities) =>
    exposed.openLane(of, capabilities, {
      tell: (notification) => {
        // In the newer revision, log messages belong to a request that has asked for them.
        if (era === 'legacy' || notification.method !== 'notifications/message') news(notification)
      },
      ...(era === 'legacy' ? { ask: (request, signal) => server.request(request, rawResult, { signal }) } : {})
    })
  const lanes = new Lanes(open, mayShare ? { join: (of) => exposed.shared.join(of, news) } : {})
  const options = { exposed, lanes, caller, era }
  const server = createExposedServer(options)
  const face = new ExposedFace(server, options)
  const stopHearing = exposed.core.index.onChange((of) => {
    if (exposed.shows(of) && server.transport) news({ method: 'notifications/tools/list_changed' })
  })
  server.onclose = () => {
    stopHearing()
    lanes.close()
  }
  return {
    server,
    lanes,
    isPlain(tool) {
      const server = era === 'legacy' ? exposed.target(tool)?.server : undefined
      return server !== undefined && exposed.core.index.revision(server)?.kind === 'legacy'
    },
    call: ({ id, name, args, meta, progressToken }, { signal, onProgress }) => {
      const of = { relatedRequestId: id }
      const mcpReq = {
        signal,
        method: 'tools/call',
        _meta: progressToken === undefined ? meta : { ...meta, progressToken },
        requestState: () => undefined,
        send: (request: PeerRequest, schema: typeof rawResult, options: object) =>
          server.request(request, schema, { ...options, ...of }),
        notify: (notification: PeerNotification) => server.notification(notification, of)
      }
      return callTool(face, { name, arguments: args }, { mcpReq, onProgress })
    }
  }
}
