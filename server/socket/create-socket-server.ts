/**
 * The live connection of the browser. It authenticates clients, parses every command, answers every ack, and forwards the session's
 * events. It decides nothing about turns or sandboxes, and lets nobody into a room before authentication.
 */
import type { IncomingMessage } from 'node:http'
import { Server } from 'socket.io'
import { COMMAND_SCHEMAS, type CommandName } from '../../contract/commands.ts'
import { pendingCalls, type Transcript } from '../../contract/transcript.ts'
import { AppError } from '../lib/errors.ts'
import { shuttingDown } from '../lib/waiting/shutting-down.ts'
import { mayUse } from '../lib/web/browser-proof.ts'
import { RateLimit } from '../lib/web/rate-limit.ts'
import { wireError } from '../lib/web/wire-error.ts'
import { bearerOf } from '../sessions/access/instance-access.ts'
import { ADDRESS_FACTOR, type Person, PersonLimit, personOf } from '../sessions/access/person-limit.ts'
import { ownerName } from '../sessions/access/session-access.ts'
import { shownTranscript } from '../sessions/feed/shown-transcript.ts'
import { broadcaster, tellStates } from './broadcast.ts'
import { chooseModel, ready } from './choose-model.ts'
import { logConnection } from './connection-log.ts'
import { limitEarlyBytes } from './early-bytes.ts'
import { handleCommand } from './handle-command.ts'
import { openNews, ownerRoom, sessionRoom } from './news.ts'
import { OpenSockets } from './open-sockets.ts'
import { PendingConnections, type RawConnection } from './pending-connections.ts'
import { RefusedSenders } from './refused-senders.ts'
import { noteSent } from './send-missing.ts'
import type { ClientSocket, Io, SocketServerOptions } from './socket-options.ts'

const MAX_PAYLOAD_BYTES = 1024 * 1024
/** Compress large messages such as snapshots. On a slow line, a long one would delay the ping until the connection times out, every time. */
const SQUEEZED = { threshold: 64 * 1024, serverNoContextTakeover: true, clientNoContextTakeover: true }
/** Maximum time from opening a connection to logging in. */
const COME_IN_WITHIN_MS = 15_000
const MINUTE_MS = 60_000
/** Short enough that a person does not begin to wonder. */
const TELL_AFTER_MS = 200
const STATE_EVERY_MS = 15_000

function limitsOf(engine: Io['engine'], options: SocketServerOptions) {
  const { limits } = options
  return {
    senders: new RefusedSenders(engine, options),
    pending: new PendingConnections(limits.maxPendingConnections),
    open: new OpenSockets(limits.maxConnections),
    openOfAddress: new OpenSockets(limits.maxConnections * ADDRESS_FACTOR, 'Your network address has'),
    connections: new PersonLimit(limits.connectionsPerMinute, (owner) => options.owners.isKnown(owner)),
    commands: new RateLimit(limits.commandsPerMinute, MINUTE_MS),
    messages: new RateLimit(limits.messagesPerMinute, MINUTE_MS)
  }
}

type Limits = ReturnType<typeof limitsOf>

export interface SocketServer {
  /** Open connections. */
  count(): number
  close(): Promise<void>
}

export function createSocketServer(options: SocketServerOptions): SocketServer {
  const { httpServer, feed, adapter } = options
  const io: Io = new Server(httpServer, {
    maxHttpBufferSize: MAX_PAYLOAD_BYTES,
    perMessageDeflate: SQUEEZED,
    serveClient: false,
    connectTimeout: COME_IN_WITHIN_MS,
    ...(adapter ? { adapter } : {}),
    cors: { origin: [...(options.allowedOrigins ?? [])] },
    allowRequest: (request, callback) => callback(null, mayConnect(request, options))
  })
  const limits = limitsOf(io.engine, options)
  io.engine.on('connection', (connection: RawConnection & { request: IncomingMessage }) => {
    const { request } = connection
    const kind = options.instance.isKnown(request.headers) ? 'known' : 'stranger'
    limits.pending.add(`${kind}:${options.addressOf(request)}`, connection)
  })
  limitEarlyBytes(io.engine, limits.pending)
  io.use((socket, next) => {
    const admitted = admit(socket, options, limits).then(
      () => {
        limits.pending.remove(socket.conn)
        next()
      },
      (error) => {
        next(connectError(error, socket, options))
        limits.pending.failed(socket.conn)
      }
    )
    orLeave(socket, options, admitted)
  })
  io.on('connection', (socket) => {
    orLeave(socket, options, serve(socket, options, limits))
  })
  io.on('retell', (sessionId) => options.chat.retell(sessionId))
  const stopNews = openNews(io, options)
  const unsubscribe = feed.subscribe(broadcaster(io, options))
  options.onProgress((progress) => io.emit('system:progress', progress))
  const timer = setInterval(() => void tellStates(io, options), STATE_EVERY_MS).unref()
  return {
    count: () => io.engine.clientsCount,
    async close() {
      clearInterval(timer)
      stopNews()
      unsubscribe()
      // Don't use io.close(): it also waits for the HTTP server, which has other clients. Pages reconnect by themselves.
      io.engine.close()
      await io.of('/').adapter.close()
    }
  }
}

/** Closes the connection if the work fails. Nothing that a client sends may end the process. */
function orLeave(socket: ClientSocket, { logger }: SocketServerOptions, work: Promise<void>): void {
  work.catch((error) => {
    const sessionId = socket.data.sessionId?.slice(0, 100)
    logger.warn({ err: error, sessionId, connection: socket.id }, 'A client could not be served.')
    socket.conn.close(true)
  })
}

async function admit(socket: ClientSocket, options: SocketServerOptions, limits: Limits): Promise<void> {
  const { headers, auth } = socket.handshake
  const address = options.addressOf(socket.request)
  options.instance.check({ headers, address, token: auth.accessToken, proof: auth.ownerProof })
  await limits.senders.check(socket.request)
  const sessionId = sessionIdOf(socket)
  const token = typeof auth.token === 'string' ? auth.token : bearerOf(headers)
  const owner = await options.owners.ownerOf(headers, auth.ownerProof)
  // Count only after authentication, so that strangers at the same address don't use up the limits of others.
  const person = { owner, address }
  await limits.connections.enter(person, 'connections')
  const leave = enterOpen(person, owner !== undefined && (await options.owners.isKnown(owner)), limits)
  try {
    const newToken = typeof auth.newToken === 'string' ? auth.newToken : undefined
    const opened = await options.access.open(sessionId, { owner, token }, { address, newToken })
    socket.data = { sessionId, ...opened, ...(owner !== undefined && { owner: ownerName(owner) }) }
  } catch (error) {
    leave()
    throw error
  }
  const logEnd = logConnection(options.logger, { sessionId, connection: socket.id, address })
  const end = (reason: string) => {
    leave()
    logEnd(reason)
  }
  socket.once('disconnect', end)
  // A connection that closes before it was admitted gets no `disconnect` event.
  socket.conn.once('close', end)
  if (socket.conn.readyState !== 'open') end('transport close')
}

/** The client chooses the shape of `auth`: an object may have a `toString` that is no function. */
function sessionIdOf({ handshake: { query, auth } }: ClientSocket): string {
  const id: unknown = query.sessionId ?? auth.sessionId
  return typeof id === 'string' || typeof id === 'number' ? String(id) : ''
}

/** Returns a function that releases the connection. */
function enterOpen(person: Person, isKnown: boolean, { open, openOfAddress }: Limits): () => void {
  // Someone with sessions has at least one connection, however many others at the same address have.
  const isSure = isKnown && open.countOf(personOf(person)) === 0
  const leave = open.enter(personOf(person))
  if (isSure) return leave
  try {
    const leaveAddress = openOfAddress.enter(person.address)
    return () => {
      leave()
      leaveAddress()
    }
  } catch (error) {
    leave()
    throw error
  }
}

/** Checks that need only the client's request. */
function mayConnect(request: IncomingMessage, options: SocketServerOptions): boolean {
  const code = options.isDraining()
    ? 'shutting_down'
    : mayUse(request, options.allowedOrigins)
      ? undefined
      : 'foreign_origin'
  if (code === undefined) return true
  const address = options.addressOf(request)
  const line = { sentence: 'Connection refused.', sender: address, fields: { address } }
  options.refused?.({ face: 'socket', code, line })
  return false
}

function connectError(error: unknown, socket: ClientSocket, options: SocketServerOptions): Error {
  const { message, ...data } = wireError(error, options.logger)
  const sessionId = sessionIdOf(socket).slice(0, 100)
  const address = options.addressOf(socket.request)
  const fields = { sessionId, connection: socket.id, address }
  options.refused?.({ face: 'socket', ...data, line: { sentence: 'Connection refused.', sender: address, fields } })
  return Object.assign(new Error(message), { data })
}

async function serve(socket: ClientSocket, options: SocketServerOptions, limits: Limits): Promise<void> {
  const { sessionId, token, owner } = socket.data
  noteSent(socket)
  listen(socket, options, limits)
  socket.once('disconnect', options.chat.attach(sessionId))
  const progress = options.progress()
  if (progress.stage !== 'ready') socket.emit('system:progress', progress)
  const model = await tellingOfModels(socket, options, chooseModel(sessionId, socket.handshake.query.model, options))
  socket.emit('system:ready', { ...ready(sessionId, model), ...(token === undefined ? {} : { token }) })
  const transcript = await options.chat.transcript(sessionId)
  const seen = transcript.seq
  // Before the snapshot, after which the page loads its lists: it misses no change of them.
  if (owner !== undefined && socket.connected) await socket.join(ownerRoom(owner))
  await sendSnapshot(socket, transcript, options)
  if (!socket.connected) return // a room that a closed socket joins is never left
  await socket.join(sessionRoom(sessionId))
  // The session was removed or hidden meanwhile; clients in the room have already been told.
  if ((await options.access.meta(sessionId))?.isDeleted !== false) return void socket.disconnect(true)
  // Events stored between the snapshot and joining the room would be missing.
  const now = await options.chat.transcript(sessionId)
  if (now.model !== null && now.model !== model) socket.emit('system:ready', ready(sessionId, now.model))
  if (now.seq !== seen) await sendSnapshot(socket, now, options)
  retell(socket, options)
}

/** Finding the models may take seconds; a client that waits is told. */
async function tellingOfModels<T>(
  socket: ClientSocket,
  { progress }: SocketServerOptions,
  work: Promise<T>
): Promise<T> {
  let isTold = false
  const timer = setTimeout(() => {
    isTold = true
    socket.emit('system:progress', { stage: 'models', message: 'Looking for models…' })
  }, TELL_AFTER_MS)
  try {
    return await work
  } finally {
    clearTimeout(timer)
    if (isTold && progress().stage !== 'ready') socket.emit('system:progress', progress())
  }
}

/** Asks the instance that streams an answer to publish it again from its beginning. */
function retell(socket: ClientSocket, { chat, adapter }: SocketServerOptions): void {
  const { sessionId } = socket.data
  chat.retell(sessionId)
  if (adapter) socket.nsp.serverSideEmit('retell', sessionId)
}

async function sendSnapshot(socket: ClientSocket, transcript: Transcript, options: SocketServerOptions): Promise<void> {
  const state = await options.directory.state(socket.data.sessionId)
  socket.emit('session:snapshot', {
    seq: transcript.seq,
    ...shownTranscript(transcript),
    pendingApprovals: pendingCalls(transcript),
    state
  })
}

function listen(socket: ClientSocket, options: SocketServerOptions, { commands, messages }: Limits): void {
  const { sessionId } = socket.data
  // The protocol allows a number for the name.
  socket.onAny((said: unknown, ...rest: unknown[]) => {
    const name = String(said)
    const ack = rest.at(-1)
    const hasAck = typeof ack === 'function'
    const reply = hasAck ? (body: object) => ack(body) : () => {}
    const answer = async (): Promise<object> => {
      if (options.isDraining()) throw shuttingDown()
      commands.enter(sessionId, 'requests')
      if (!isCommand(name))
        throw new AppError('invalid', 'unknown_command', `There is no command "${name.slice(0, 50)}".`)
      await options.access.checkStillThere(sessionId)
      if (name === 'session:snapshot') {
        await sendSnapshot(socket, await options.chat.transcript(sessionId), options)
        retell(socket, options)
      }
      // Both send a request to the model.
      if (name !== 'message' && name !== 'turn:retry') return handleCommand(name, rest[0], sessionId, options)
      messages.enter(sessionId, 'messages')
      try {
        return await handleCommand(name, rest[0], sessionId, options)
      } catch (error) {
        messages.giveBack(sessionId)
        throw error
      }
    }
    const answered = answer().then(
      (result) => reply({ ok: true, ...result }),
      (error) => {
        const body = wireError(error, options.logger)
        const fields = { sessionId, connection: socket.id, command: name.slice(0, 50) }
        const line = { sentence: 'Command refused.', sender: sessionId, fields }
        options.refused?.({ face: 'socket', code: body.code, line })
        if (hasAck) reply({ ok: false, error: body })
        // Otherwise the client would never learn of it.
        else socket.emit('agent:error', body)
      }
    )
    orLeave(socket, options, answered)
  })
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMAND_SCHEMAS, name)
