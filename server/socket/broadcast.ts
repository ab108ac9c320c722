import type { SessionFeed } from '../sessions/feed/session-feed.ts'
import { SESSION_LOST } from '../storage/store-errors.ts'
import { ready } from './choose-model.ts'
import { sessionRoom } from './news.ts'
import { sendMissing, sendStored } from './send-missing.ts'
import type { Io, SocketServerOptions } from './socket-options.ts'

/** Sends what happens in a session to its clients. */
export function broadcaster(io: Io, options: SocketServerOptions): Parameters<SessionFeed['subscribe']>[0] {
  return {
    stored(sessionId, events) {
      for (const event of events) {
        const { type, data } = event
        sendStored(io.to(sessionRoom(sessionId)), event)
        if (type === 'model:selected')
          io.to(sessionRoom(sessionId)).emit('system:ready', ready(sessionId, String(data.model)))
        if (/^(tool:(started|result)|session:notice)$/.test(type)) void tellState(io, sessionId, options)
      }
    },
    live: (sessionId, type, data) => void io.to(sessionRoom(sessionId)).emit(type, data as never),
    gone: (sessionId) => io.in(sessionRoom(sessionId)).disconnectSockets(true),
    revoked: (sessionId) => io.in(sessionRoom(sessionId)).disconnectSockets(true),
    lost(sessionId) {
      io.local.to(sessionRoom(sessionId)).emit('session:lost', { message: SESSION_LOST })
      io.local.in(sessionRoom(sessionId)).disconnectSockets(true)
    }
  }
}

async function tellState(io: Pick<Io['local'], 'to'>, sessionId: string, options: SocketServerOptions): Promise<void> {
  try {
    io.to(sessionRoom(sessionId)).emit('session:state', await options.directory.state(sessionId))
  } catch (error) {
    options.logger.debug({ err: error, sessionId }, 'Could not tell clients the state of a session.')
  }
}

export async function tellStates(io: Io, options: SocketServerOptions): Promise<void> {
  const sessions = new Set([...io.sockets.sockets.values()].map(({ data }) => data.sessionId))
  for (const sessionId of sessions) options.chat.nudge(sessionId)
  void sendMissing(io, options)
  await Promise.all([...sessions].map((sessionId) => tellState(io.local, sessionId, options)))
}
