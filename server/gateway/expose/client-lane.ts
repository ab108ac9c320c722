/**
 * The connections of one client of the pass-through mode, or of one request at a time. Owns where a server's questions and
 * notifications go, and what a restarted server must be told again. Invariant: they reach only the client behind it.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { type ClientCapabilities, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import type { Peer } from '../../connections/asking/peer.ts'
import type { Connections } from '../../connections/connections.ts'
import type { LiveServer } from '../../connections/live-server.ts'
import type { PeerNotification, PeerRequest, RawResult } from '../../connections/wire/call-input.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import { namedQuestion } from '../asking/name-asker.ts'
import type { Scope } from './scope.ts'

/** Receives what belongs to no request. */
export type Standalone = Omit<Scope, 'ask' | 'server'> & { ask?: Scope['ask'] }

export interface ClientLaneOptions {
  connections: Connections
  caller: Caller
  capabilities: ClientCapabilities
  standalone: Standalone
  /** Several clients use it, so nothing that a server sends may go to the one whose request runs. */
  isShared?: boolean
  logger: Logger
}

interface Watched {
  stop: Promise<() => Promise<void>>
  letGo(): void
  watchers: number
  /** The subscription was made: if the server restarts, it must be made again. */
  isAsked: boolean
}

const POSTPONE_MS = 2000
const RESTART = { firstMs: 500, maxMs: 300_000 }
const MAX_WATCHED = 1000
/** Maximum number of questions that wait for the client's answer. */
const MAX_QUESTIONS = 100
/** Longer than any server has time to start. */
const MAX_START_MS = 600_000
const NEEDS: Record<string, 'elicitation' | 'sampling' | 'roots'> = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots'
}

export class ClientLane implements Peer {
  readonly caller: Caller
  readonly capabilities: ClientCapabilities
  readonly #options: ClientLaneOptions
  readonly #scopes: Scope[] = []
  readonly #watched = new Map<string, Watched>()
  /** How often each server was restarted for its subscriptions. */
  readonly #restarts = new Map<string, number>()
  #level: string | undefined
  #questions = 0

  constructor(options: ClientLaneOptions) {
    const { elicitation, sampling, roots } = options.capabilities
    this.#options = options
    // Other capabilities that the client declares are not passed on.
    this.capabilities = {
      ...(elicitation ? { elicitation } : {}),
      ...(sampling ? { sampling } : {}),
      ...(roots ? { roots } : {})
    }
    this.caller = { ...options.caller, laneId: options.connections.openLane(this) }
  }

  get level(): string | undefined {
    return this.#level
  }

  async during<T>(scope: Scope, job: () => Promise<T>): Promise<T> {
    this.#scopes.push(scope)
    try {
      return await job()
    } finally {
      this.#scopes.splice(this.#scopes.indexOf(scope), 1)
    }
  }

  async onRequest(server: string, request: PeerRequest, signal: AbortSignal, postpone: () => void): Promise<RawResult> {
    const need = NEEDS[request.method]
    const asker = this.#scopeOf(server) ?? this.#options.standalone
    if (need === undefined || this.capabilities[need] === undefined || asker.ask === undefined) {
      throw new ProtocolError(
        ProtocolErrorCode.MethodNotFound,
        'The client behind this connection can not answer this.'
      )
    }
    if (this.#questions >= MAX_QUESTIONS) {
      throw new ProtocolError(ProtocolErrorCode.InternalError, `No more than ${MAX_QUESTIONS} questions at once.`)
    }
    this.#questions++
    const postponing = setInterval(postpone, POSTPONE_MS)
    try {
      return await asker.ask(namedQuestion(server, request), signal)
    } finally {
      clearInterval(postponing)
      this.#questions--
    }
  }

  onNotification(server: string, notification: PeerNotification): void {
    const isOfRequest = notification.method === 'notifications/message' && !this.#options.isShared
    const to = (isOfRequest && this.#scopeOf(server)) || this.#options.standalone
    to.tell(notification)
  }

  /** A new or restarted server knows neither log level nor subscriptions. */
  onOpened(server: string, live: LiveServer): void {
    const report = (error: unknown) => this.#options.logger.debug({ server }, messageOf(error))
    if (this.#level !== undefined) this.#sendLevel(live, this.#level).catch(report)
    for (const [key, watched] of this.#watched) {
      const { server: of, uri } = JSON.parse(key)
      if (of !== server || !watched.isAsked) continue
      watched.stop = live.subscribe(uri)
      watched.stop.catch(report)
    }
    void live.crashed.then(() => this.#restart(server))
  }

  /** A crashed server is started again for its subscriptions. Without any, the next call does that. */
  async #restart(server: string): Promise<void> {
    const isWatched = () => [...this.#watched.keys()].some((key) => JSON.parse(key).server === server)
    while (isWatched()) {
      const attempt = (this.#restarts.get(server) ?? 0) + 1
      this.#restarts.set(server, attempt)
      await delay(backoffMs(attempt, RESTART), undefined, { ref: false })
      if (!isWatched()) return
      const { signal } = new AbortController()
      const list = async () => this.#connection(server).list(signal)
      const error = await list().then(() => undefined, messageOf)
      if (error === undefined) return
      this.#options.logger.debug({ server }, `Not restarted for its subscriptions yet: ${error}`)
    }
  }

  async setLevel(servers: string[], level: string): Promise<void> {
    this.#level = level
    const running = servers.map((server) => this.#connection(server).live)
    await Promise.all(running.map((live) => live && this.#sendLevel(live, level)))
  }

  /** Notifies all running servers: those that start later ask by themselves. */
  async notifyServers(servers: string[], method: string): Promise<void> {
    await Promise.all(
      servers.map((server) =>
        this.#connection(server)
          .live?.notify(method)
          .catch(() => {})
      )
    )
  }

  /** Starts the server if necessary, and keeps it running. One client may watch the same resource several times. */
  async watch(server: string, uri: string, signal: AbortSignal): Promise<void> {
    const key = JSON.stringify({ server, uri })
    // Registered before the first await, so that a second watch at the same time finds the first.
    const watched = this.#watched.get(key) ?? this.#begin(key, server, uri)
    watched.watchers++
    const { stop } = watched
    try {
      await withDeadline({ what: `the subscription to the server "${server}"`, ms: MAX_START_MS, signal }, () => stop)
    } catch (error) {
      if (this.#leave(key, watched)) stop.then((end) => end()).catch(() => {})
      throw error
    }
  }

  async unwatch(server: string, uri: string): Promise<void> {
    const key = JSON.stringify({ server, uri })
    const watched = this.#watched.get(key)
    if (watched !== undefined && this.#leave(key, watched)) await (await watched.stop)()
  }

  /** Stops its servers until they are needed again. One with subscriptions has to run for them. */
  rest(): void {
    if (this.#watched.size === 0 && this.caller.laneId !== undefined) this.#options.connections.rest(this.caller.laneId)
  }

  close(): void {
    for (const { letGo } of this.#watched.values()) letGo()
    this.#watched.clear()
    if (this.caller.laneId !== undefined) this.#options.connections.release(this.caller.laneId)
  }

  #begin(key: string, server: string, uri: string): Watched {
    if (this.#watched.size >= MAX_WATCHED) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `No more than ${MAX_WATCHED} subscriptions at once.`)
    }
    const connection = this.#connection(server)
    const ask = async () => {
      // The first caller may give up; the start continues for the others, with its own deadline.
      await connection.list(new AbortController().signal)
      const { live } = connection
      if (!live) throw new ProtocolError(ProtocolErrorCode.InternalError, `The server "${server}" has just stopped.`)
      watched.isAsked = true
      return live.subscribe(uri)
    }
    const letGo = connection.hold()
    const watched: Watched = { stop: Promise.resolve().then(ask), letGo, watchers: 0, isAsked: false }
    this.#watched.set(key, watched)
    return watched
  }

  /** Returns true for the last one. */
  #leave(key: string, watched: Watched): boolean {
    if (--watched.watchers > 0) return false
    if (this.#watched.get(key) === watched) this.#watched.delete(key)
    watched.letGo()
    return true
  }

  /** The latest of several running requests: all come from the same client. */
  #scopeOf(server: string): Scope | undefined {
    return this.#scopes.findLast((scope) => scope.server === server)
  }

  #connection(server: string) {
    return this.#options.connections.connection(server, this.caller)
  }

  async #sendLevel(live: LiveServer, level: string): Promise<void> {
    // A server of the newer revision gets the level with every request.
    if (live.revision?.kind === 'modern' || live.capabilities.logging === undefined) return
    const signal = AbortSignal.timeout(POSTPONE_MS)
    await live.request({ caller: this.caller, method: 'logging/setLevel', params: { level }, signal })
  }
}
