import { SESSION_LOST } from '../sessions/access/session-access.ts'
import type { SessionFeed } from '../sessions/feed/session-feed.ts'
import { shownEvent } from '../sessions/feed/shown-transcript.ts'
import { ready } from './choose-model.ts'
import type { Io, SocketServerOptions } from './socket-options.ts'

/** Sends what happens in a session to its clients. */
export function broadcaster(io: Io, options: SocketServerOptions): Parameters<SessionFeed['subscribe']>[0] {
  return {
    stored(sessionId, events) {
      for (const event of events) {
        const { type, data, seq, at } = event
        io.to(sessionId).emit(type as 'user:message', { ...shownEvent(event), seq, at } as never)
        if (type === 'model:selected') io.to(sessionId).emit('system:ready', ready(sessionId, String(data.model)))
        if (/^(tool:(started|result)|session:notice)$/.test(type)) void tellState(io, sessionId, options)
      }
    },
    live: (sessionId, type, data) => void io.to(sessionId).emit(type, data as never),
    gone: (sessionId) => io.in(sessionId).disconnectSockets(true),
    revoked: (sessionId) => io.in(sessionId).disconnectSockets(true),
    lost(sessionId) {
      io.local.to(sessionId).emit('session:lost', { message: SESSION_LOST })
      io.local.in(sessionId).disconnectSockets(true)
    }
  }
}

async function tellState(io: Pick<Io['local'], 'to'>, sessionId: string, options: SocketServerOptions): Promise<void> {
  try {
    io.to(sessionId).emit('session:state', await options.directory.state(sessionId))
  } catch (error) {
    options.logger.debug({ err: error, sessionId }, 'No state to tell.')
  }
}

export async function tellStates(io: Io, options: SocketServerOptions): Promise<void> {
  const sessions = new Set([...io.sockets.sockets.values()].map(({ data }) => data.sessionId))
  for (const sessionId of sessions) options.chat.nudge(sessionId)
  await Promise.all([...sessions].map((sessionId) => tellState(io.local, sessionId, options)))
}
