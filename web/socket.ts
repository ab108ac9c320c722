/** The page's only socket. It knows the protocol but not what is shown; the stores bind to it. */
import { io, type Socket } from 'socket.io-client'
import type { Ack, CommandInput, CommandName } from '../contract/commands.ts'
import type { ClientToServer, ServerToClient } from '../contract/live.ts'
import { ownerProof } from './owner-proof.ts'

export type PageSocket = Socket<ServerToClient, ClientToServer>

const TIMEOUT_MS = 20_000
/** The server closes the connection if a message is larger than this. */
const MAX_BYTES = 1_000_000

/** Creates the socket without connecting it. The page must become an owner first, because the first request sends the cookie. */
export function openSocket(sessionId: string, model?: string): PageSocket {
  const socket: PageSocket = io({
    query: { sessionId, ...(model && { model }) },
    auth: (give) => give({ ownerProof: ownerProof() }),
    autoConnect: false,
    transports: ['websocket', 'polling'],
    tryAllTransports: true,
    forceNew: true,
    reconnectionDelay: 300,
    reconnectionDelayMax: 3000
  })
  // Once the model is chosen, a reconnect must not choose it again over a later choice.
  socket.on('system:ready', () => {
    socket.io.opts.query = { sessionId }
  })
  return socket
}

/** Never rejects: if a command can't be sent or is not answered, the result says so. */
export async function command<C extends CommandName>(
  socket: PageSocket,
  name: C,
  input: CommandInput<C>
): Promise<Ack> {
  if (!socket.connected) return failure('offline', 'There is no connection to the server right now.')
  if (new Blob([JSON.stringify(input)]).size > MAX_BYTES)
    return failure('too_large', 'This message is too large: the limit is one megabyte.')
  return new Promise((resolve) => {
    const ack = (lost: Error | null, reply: Ack) =>
      resolve(lost ? failure('no_answer', 'The server has not answered.') : reply)
    // With a timeout, socket.io also reports an answer that was lost with the connection.
    socket.timeout(TIMEOUT_MS).emit(name, ...([input, ack] as never))
  })
}

function failure(code: string, message: string): Ack {
  return { ok: false, error: { code, message } }
}
