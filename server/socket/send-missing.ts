/**
 * Sends clients stored events that nobody published to them: the instance that stored them died right after it, or the live channel
 * between instances lost them. A client can notice only with the next event, and a card that waits for approval may be the last one.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ServerToClient } from '../../contract/live.ts'
import { shownEvent } from '../sessions/feed/shown-transcript.ts'
import type { StoredEvent } from '../storage/event-log.ts'
import type { ClientSocket, Io, SocketServerOptions } from './socket-options.ts'

/** An event is stored before it is published, so a client is often behind for a moment. */
const MOMENT_MS = 1000

interface Target {
  emit(type: 'user:message', event: never): unknown
}

export function sendStored(to: Target, event: StoredEvent): void {
  const { type, seq, at } = event
  to.emit(type as 'user:message', { ...shownEvent(event), seq, at } as never)
}

/** Call this before anything is sent. */
export function noteSent(socket: ClientSocket): void {
  socket.onAnyOutgoing((_name: keyof ServerToClient, body: unknown) => {
    const { seq } = (body ?? {}) as { seq?: unknown }
    if (typeof seq === 'number') socket.data.sent = Math.max(seq, socket.data.sent ?? 0)
  })
}

/** Looks at all clients of this instance. */
export async function sendMissing(io: Io, { events, logger }: SocketServerOptions): Promise<void> {
  try {
    const late = new Map<ClientSocket, number>()
    const last = new Map<string, number>()
    for (const socket of io.sockets.sockets.values()) {
      const { sessionId, sent } = socket.data
      if (sent === undefined) continue
      const seq = last.get(sessionId) ?? (await events.lastSeq(sessionId))
      last.set(sessionId, seq)
      if (seq > sent) late.set(socket, seq)
    }
    if (late.size > 0) await delay(MOMENT_MS, undefined, { ref: false })
    for (const [socket, seq] of late) {
      const { sessionId, sent = seq } = socket.data
      if (sent >= seq || !socket.connected) continue
      // A page of the log; the next look sends more.
      for (const event of await events.read(sessionId, { after: sent }))
        if (event.seq > (socket.data.sent ?? 0)) sendStored(socket, event)
      logger.info({ sessionId, connection: socket.id, after: sent }, 'Sent events that a client had missed.')
    }
  } catch (error) {
    logger.debug({ err: error }, 'Could not look for events that clients have missed.')
  }
}
