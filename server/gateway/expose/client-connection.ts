import type { Server } from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import type { PeerNotification } from '../../connections/wire/call-input.ts'
import { rawResult } from '../../connections/wire/raw-result.ts'
import { createExposedServer } from './create-exposed-server.ts'
import type { Exposed } from './exposed.ts'
import { Lanes } from './lanes.ts'

export interface ClientConnection {
  server: Server
  lanes: Lanes
}

/** A client that stays connected: notifications are sent to it, and its lanes are closed with it. */
export function connectClient(exposed: Exposed, caller: Caller, era: 'legacy' | 'modern'): ClientConnection {
  const news = (notification: PeerNotification) => void server.notification(notification).catch(() => {})
  const lanes = new Lanes((of, capabilities) =>
    exposed.openLane(of, capabilities, {
      tell: (notification) => {
        // In the newer revision, log messages belong to a request that has asked for them.
        if (era === 'legacy' || notification.method !== 'notifications/message') news(notification)
      },
      ...(era === 'legacy' ? { ask: (request, signal) => server.request(request, rawResult, { signal }) } : {})
    })
  )
  const server = createExposedServer({ exposed, lanes, caller, era })
  const stopHearing = exposed.core.index.onChange((of) => {
    if (exposed.shows(of) && server.transport) news({ method: 'notifications/tools/list_changed' })
  })
  server.onclose = () => {
    stopHearing()
    lanes.close()
  }
  return { server, lanes }
}
