/**
 * The browser's live channel. Proves who connects, parses every command, answers every ack, and passes on what the session's
 * feed says. Decides nothing about turns or sandboxes, and joins nobody to a room before their proof has held.
 */
import type { Server as HttpServer } from 'node:http'
import { Server, type ServerOptions, type Socket } from 'socket.io'
import { COMMAND_SCHEMAS, type CommandName } from '../../contract/commands.ts'
import type { ClientToServer, Progress, Ready, ServerToClient, SessionState } from '../../contract/live.ts'
import { pendingCalls, type Transcript } from '../../contract/transcript.ts'
import { isOwnOrigin, OWNER_COOKIE, readCookie } from '../lib/browser-proof.ts'
import type { AddressOf } from '../lib/client-address.ts'
import { AppError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { RateLimit } from '../lib/rate-limit.ts'
import { shuttingDown } from '../lib/shutting-down.ts'
import { wireError } from '../lib/wire-error.ts'
import type { Models } from '../models/port.ts'
import type { Chat } from '../sessions/chat.ts'
import type { InstanceAccess } from '../sessions/instance-access.ts'
import { SESSION_LOST, type SessionAccess } from '../sessions/session-access.ts'
import type { SessionFeed } from '../sessions/session-feed.ts'
import { shownTranscript } from '../sessions/shown-transcript.ts'
import { runCommand } from './run-command.ts'
import { SocketsPerAddress } from './sockets-per-address.ts'

export interface SocketServerOptions {
  httpServer: HttpServer
  chat: Chat
  access: SessionAccess
  models: Models
  feed: SessionFeed
  instance: Pick<InstanceAccess, 'check'>
  addressOf: AddressOf
  state: (sessionId: string) => Promise<SessionState>
  progress: () => Progress
  onProgress: (listener: (progress: Progress) => void) => void
  /** How instances hear each other; undefined: there is one. */
  adapter?: ServerOptions['adapter'] | undefined
  /** The server is shutting down: nothing new is accepted. */
  isDraining: () => boolean
  /** Hears of every connection and command that is answered with an error. */
  refused?: (code: string) => void
  logger: Logger
}

type Io = Server<ClientToServer, ServerToClient, object, SocketData>
export type ClientSocket = Socket<ClientToServer, ServerToClient, object, SocketData>

interface SocketData {
  sessionId: string
  token?: string
}

const MAX_PAYLOAD_BYTES = 1024 * 1024
/** What is large, as snapshots are: on a slow line a long one would keep the ping behind it waiting until the connection is given up, every time. */
const SQUEEZED = { threshold: 64 * 1024, serverNoContextTakeover: true, clientNoContextTakeover: true }
/** Of one session, over all its tabs. */
const COMMANDS_PER_MINUTE = 300
const MESSAGES_PER_MINUTE = 30
/** Of one address. */
const CONNECTIONS_PER_MINUTE = 600
const STATE_EVERY_MS = 15_000

interface Limits {
  addresses: SocketsPerAddress
  connections: RateLimit
  commands: RateLimit
  messages: RateLimit
}

export interface SocketServer {
  /** Open connections. */
  count(): number
  close(): Promise<void>
}

export function createSocketServer(options: SocketServerOptions): SocketServer {
  const { httpServer, feed, logger, adapter } = options
  const io: Io = new Server(httpServer, {
    maxHttpBufferSize: MAX_PAYLOAD_BYTES,
    perMessageDeflate: SQUEEZED,
    serveClient: false,
    ...(adapter ? { adapter } : {}),
    allowRequest: (request, callback) => callback(null, !options.isDraining() && isOwnOrigin(request))
  })
  const limits: Limits = {
    addresses: new SocketsPerAddress(),
    connections: new RateLimit(CONNECTIONS_PER_MINUTE, 60_000),
    commands: new RateLimit(COMMANDS_PER_MINUTE, 60_000),
    messages: new RateLimit(MESSAGES_PER_MINUTE, 60_000)
  }
  io.use((socket, next) => {
    admit(socket, options, limits).then(
      () => next(),
      (error) => next(connectError(error, socket, options))
    )
  })
  io.on('connection', (socket) => {
    void serve(socket, options, limits).catch((error) => {
      logger.warn({ err: error }, 'A client could not be served.')
      socket.disconnect(true)
    })
  })
  const unsubscribe = feed.subscribe(broadcaster(io, options))
  options.onProgress((progress) => io.emit('system:progress', progress))
  const timer = setInterval(() => void tellStates(io, options), STATE_EVERY_MS)
  timer.unref()
  return {
    count: () => io.engine.clientsCount,
    async close() {
      clearInterval(timer)
      unsubscribe()
      // Not io.close(): that also waits for the HTTP server, which has clients of its own. Pages reconnect by themselves.
      io.engine.close()
      await io.of('/').adapter.close()
    }
  }
}

async function admit(socket: ClientSocket, options: SocketServerOptions, limits: Limits): Promise<void> {
  const { headers, query, auth } = socket.handshake
  const address = options.addressOf(socket.request)
  limits.addresses.enter(address, socket)
  if (!limits.connections.take(address)) throw tooFast()
  options.instance.check({ headers, address, token: auth.accessToken })
  const sessionId = String(query.sessionId ?? '')
  const token = typeof auth.token === 'string' ? auth.token : undefined
  const opened = await options.access.open(sessionId, { owner: readCookie(headers.cookie, OWNER_COOKIE), token })
  socket.data = { sessionId, ...opened }
  options.logger.info({ sessionId, connection: socket.id, address }, 'Connected to the session.')
}

function connectError(error: unknown, socket: ClientSocket, { logger, refused }: SocketServerOptions): Error {
  const { code, message } = wireError(error, logger)
  refused?.(code)
  const sessionId = String(socket.handshake.query.sessionId ?? '').slice(0, 100)
  logger.info({ sessionId, connection: socket.id, code }, 'Connection refused.')
  return Object.assign(new Error(message), { data: { code } })
}

async function serve(socket: ClientSocket, options: SocketServerOptions, limits: Limits): Promise<void> {
  const { sessionId, token } = socket.data
  listen(socket, options, limits)
  socket.once('disconnect', options.chat.attach(sessionId))
  const progress = options.progress()
  if (progress.stage !== 'ready') socket.emit('system:progress', progress)
  const model = await chooseModel(socket, options)
  socket.emit('system:ready', { ...ready(sessionId, model), ...(token === undefined ? {} : { token }) })
  const transcript = await options.chat.transcript(sessionId)
  const seen = transcript.seq
  await sendSnapshot(socket, transcript, options)
  if (!socket.connected) return // a room that a closed socket joins is never left
  await socket.join(sessionId)
  // Removed since it was opened: those in the room have been told already.
  if (!(await options.access.meta(sessionId))) return void socket.disconnect(true)
  // What was stored between the snapshot and the room would be a gap.
  const now = await options.chat.transcript(sessionId)
  if (now.model !== null && now.model !== model) socket.emit('system:ready', ready(sessionId, now.model))
  if (now.seq !== seen) await sendSnapshot(socket, now, options)
}

/** A wish that differs from the session's model switches it, for every tab. */
async function chooseModel(socket: ClientSocket, { models, chat, logger }: SocketServerOptions): Promise<string> {
  const { sessionId } = socket.data
  const wish = socket.handshake.query.model
  const wanted = typeof wish === 'string' && wish !== '' ? wish : undefined
  const current = (await chat.transcript(sessionId)).model
  if (current !== null && wanted === undefined) return current
  try {
    const model = await models.resolve(wanted)
    if (current === null) {
      if (wanted !== undefined) await models.prove(model)
      return await chat.begin(sessionId, model)
    }
    await chat.selectModel(sessionId, model)
    return model
  } catch (error) {
    const model = current ?? (await chat.begin(sessionId, await models.resolve(undefined)))
    const { message } = wireError(error, logger)
    await chat.notice(sessionId, 'model_not_chosen', `Going on with ${model}: ${message}`)
    return model
  }
}

function ready(sessionId: string, model: string): Ready {
  return { sessionId, provider: model.split('/')[0] ?? '', model }
}

async function sendSnapshot(socket: ClientSocket, transcript: Transcript, options: SocketServerOptions): Promise<void> {
  const state = await options.state(socket.data.sessionId)
  socket.emit('session:snapshot', {
    seq: transcript.seq,
    transcript: shownTranscript(transcript),
    pendingApprovals: pendingCalls(transcript),
    state
  })
}

function listen(socket: ClientSocket, options: SocketServerOptions, { commands, messages }: Limits): void {
  const { sessionId } = socket.data
  socket.onAny((name: string, ...rest: unknown[]) => {
    const ack = rest.at(-1)
    const reply = typeof ack === 'function' ? (body: object) => ack(body) : () => {}
    const answer = async (): Promise<object> => {
      if (options.isDraining()) throw shuttingDown()
      if (!commands.take(sessionId) || (name === 'message' && !messages.take(sessionId))) throw tooFast()
      if (!isCommand(name))
        throw new AppError('invalid', 'unknown_command', `There is no command "${String(name).slice(0, 50)}".`)
      if (name === 'session:snapshot') {
        await sendSnapshot(socket, await options.chat.transcript(sessionId), options)
        return {}
      }
      return runCommand(name, rest[0], sessionId, options)
    }
    answer().then(
      (result) => reply({ ok: true, ...result }),
      (error) => {
        const body = wireError(error, options.logger)
        options.refused?.(body.code)
        options.logger.info(
          { sessionId, connection: socket.id, command: name.slice(0, 50), code: body.code },
          'Command refused.'
        )
        reply({ ok: false, error: body })
      }
    )
  })
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMAND_SCHEMAS, name)

function tooFast(): AppError {
  return new AppError('unavailable', 'too_fast', 'Too many requests in a short time; wait a minute.')
}

function broadcaster(io: Io, options: SocketServerOptions): Parameters<SessionFeed['subscribe']>[0] {
  return {
    stored(sessionId, events) {
      for (const { type, data, seq, at } of events) {
        const { parts: _kept, ...shown } = data
        io.to(sessionId).emit(type as 'user:message', { ...shown, seq, at } as never)
        if (type === 'model:selected') io.to(sessionId).emit('system:ready', ready(sessionId, String(data.model)))
        if (/^(tool:(started|result)|session:notice)$/.test(type)) void tellState(io, sessionId, options)
      }
    },
    live(sessionId, type, data) {
      io.to(sessionId).emit(type, data as never)
    },
    gone(sessionId) {
      io.in(sessionId).disconnectSockets(true)
    },
    lost(sessionId) {
      io.local.to(sessionId).emit('session:lost', { message: SESSION_LOST })
      io.local.in(sessionId).disconnectSockets(true)
    }
  }
}

async function tellState(
  io: Pick<Io, 'to'> | Io['local'],
  sessionId: string,
  { state, logger }: SocketServerOptions
): Promise<void> {
  try {
    io.to(sessionId).emit('session:state', await state(sessionId))
  } catch (error) {
    logger.debug({ err: error, sessionId }, 'No state to tell.')
  }
}

async function tellStates(io: Io, options: SocketServerOptions): Promise<void> {
  const sessions = new Set([...io.sockets.sockets.values()].map(({ data }) => data.sessionId))
  for (const sessionId of sessions) options.chat.nudge(sessionId)
  await Promise.all([...sessions].map((sessionId) => tellState(io.local, sessionId, options)))
}
