/**
 * HTTP sessions for clients of the older revisions: a server's question and its answer come in two requests, and only a session
 * connects them. Owns their ids, number and age. Invariant: a session serves only the owner that opened it.
 */
import type { Caller } from '../../../calls/caller.ts'
import { capabilityKey } from '../../../connections/asking/peer.ts'
import type { RawResult } from '../../../connections/wire/call-input.ts'
import type { Logger } from '../../../lib/logger.ts'
import { type ClientConnection, connectClient, type FastCallRequest } from '../client-connection.ts'
import type { Exposed } from '../exposed.ts'
import { bodyEnd } from './body-end.ts'
import type { FastAnswer } from './fast-answer.ts'
import { SessionTransport } from './session-transport.ts'

export interface FetchOptions {
  parsedBody?: unknown
  /** Aborts when the client has disconnected. */
  gone?: AbortSignal
}

export interface HttpSessionsOptions {
  open(): Promise<Exposed>
  maxBodyBytes: number
  logger: Logger
  idleMs?: number
  /** How long after the end of its stream a client is taken for gone. */
  leftMs?: number
  maxSessions?: number
}

/** Calls a tool without the SDK. Resolves to undefined if the client has cancelled the call. */
export type CallFast = (answer: FastAnswer, gone: AbortSignal) => Promise<RawResult | undefined>

interface Session {
  owner: string
  transport: SessionTransport
  client: ClientConnection
  close(): Promise<void>
  /** Stops its servers until the next request. */
  rest(): void
  /** Number of open requests and streams. */
  active: number
  usedAt: number
}

const IDLE_MS = 1_800_000
/** Clients that lose their stream open it again within seconds. */
const LEFT_MS = 30_000
const MAX_SESSIONS = 64
const SWEEP_MS = 30_000

export class HttpSessions {
  readonly #options: HttpSessionsOptions
  readonly #sessions = new Map<string, Session>()
  readonly #sweeper: NodeJS.Timeout

  constructor(options: HttpSessionsOptions) {
    this.#options = options
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  async fetch(request: Request, caller: Caller, options: FetchOptions = {}): Promise<Response> {
    const id = request.headers.get('mcp-session-id')
    if (id !== null) {
      const session = this.#sessions.get(id)
      // This status tells a client to open a new session.
      if (session?.owner !== caller.owner) return refusal(404, 'Session not found')
      return this.#serve(session, request, options)
    }
    if (request.method !== 'POST') return refusal(400, 'Bad Request: Mcp-Session-Id header is required')
    if (!this.#makeRoom()) return refusal(503, 'Too many sessions: try again later')
    const session = await this.#open(caller, request.signal)
    try {
      return await this.#serve(session, request, options)
    } finally {
      if (session.transport.sessionId === undefined) await session.close()
    }
  }

  /** The way to make this call without the SDK, if there is one. */
  fastCall(id: string, owner: string, call: FastCallRequest): CallFast | undefined {
    const session = this.#sessions.get(id)
    if (session?.owner !== owner || !session.client.isPlain(call.name)) return undefined
    const { transport, client } = session
    if (transport.isRunning(call.id)) return undefined
    return async (answer, gone) => {
      session.active++
      try {
        return await transport.run(call.id, answer, gone, (signal) => client.call(call, { signal }))
      } finally {
        session.active--
        session.usedAt = Date.now()
      }
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper)
    await Promise.all([...this.#sessions.values()].map((session) => session.close()))
  }

  async #open(caller: Caller, signal: AbortSignal): Promise<Session> {
    const { open, maxBodyBytes, logger } = this.#options
    const exposed = await open()
    // In a lane that others share, so that no process is left over if this client needs a lane of its own.
    const discovery = exposed.shared.join(caller, () => {})
    await exposed.discoverServers(discovery.lane.caller, signal)
    const client = connectClient(exposed, caller, 'legacy', { mayShare: true })
    const { server, lanes } = client
    server.oninitialized = () => {
      const capabilities = server.getClientCapabilities() ?? {}
      if (capabilityKey(capabilities) === '')
        lanes.borrow({ server: '', caller, capabilities, isModern: false, alone: false })
      discovery.leave()
    }
    const transport = new SessionTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void this.#sessions.set(id, session),
      onsessionclosed: (id) => void this.#sessions.delete(id),
      maxRequestBodySize: maxBodyBytes
    })
    transport.onclose = () => {
      if (transport.sessionId !== undefined) this.#sessions.delete(transport.sessionId)
    }
    server.onerror = (error) => logger.debug({ err: error }, 'gateway session')
    const session: Session = {
      owner: caller.owner,
      transport,
      client,
      async close() {
        discovery.leave()
        await server.close()
      },
      rest() {
        discovery.leave()
        lanes.rest()
      },
      active: 0,
      usedAt: Date.now()
    }
    await server.connect(transport)
    transport.hearCancelled()
    return session
  }

  async #serve(session: Session, request: Request, options: FetchOptions): Promise<Response> {
    session.active++
    const over = () => {
      session.active--
      session.usedAt = Date.now()
      // Most clients end a session by closing their stream, without saying so.
      if (request.method === 'GET') this.#restUnlessUsed(session)
    }
    try {
      const response = await session.transport.handleRequest(request, options)
      return bodyEnd(response, options.gone ?? request.signal, over)
    } catch (error) {
      over()
      throw error
    }
  }

  /** The session stays: a client that comes back goes on with it, and its servers start again. */
  #restUnlessUsed(session: Session): void {
    const { leftMs = LEFT_MS } = this.#options
    const { usedAt } = session
    setTimeout(() => {
      if (session.active === 0 && session.usedAt === usedAt) session.rest()
    }, leftMs).unref()
  }

  /** Removes the session that has been idle for longest. */
  #makeRoom(): boolean {
    const { maxSessions = MAX_SESSIONS } = this.#options
    if (this.#sessions.size < maxSessions) return true
    const waiting = [...this.#sessions.values()].filter(({ active }) => active === 0)
    const oldest = waiting.toSorted((one, other) => one.usedAt - other.usedAt)[0]
    void oldest?.close()
    return oldest !== undefined
  }

  #sweep(): void {
    const { idleMs = IDLE_MS } = this.#options
    for (const session of this.#sessions.values()) {
      if (session.active === 0 && Date.now() - session.usedAt > idleMs) void session.close()
    }
  }
}

function refusal(status: number, message: string): Response {
  return Response.json(
    { jsonrpc: '2.0', error: { code: status === 404 ? -32_001 : -32_000, message }, id: null },
    { status }
  )
}
