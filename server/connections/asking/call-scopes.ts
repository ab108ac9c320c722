/**
 * Assigns a server's questions and log messages to a running call: they carry no address, and several people's calls share the connection.
 * Invariant: a question reaches only a person whose call may have led to it, and nobody if that is not certain.
 */

import { type ClientCapabilities, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/client'
import { isAppError, messageOf } from '../../lib/errors.ts'
import type { CallInput, PeerNotification, PeerRequest, RawResult } from '../wire/call-input.ts'
import { capabilityKey, type OpenedServer, type Peer } from './peer.ts'

/** The kinds of questions that the chat can show: forms, and addresses to open. */
export const CHAT_CAPABILITIES: ClientCapabilities = { elicitation: { form: {}, url: {} } }
export const CHAT_KEY = capabilityKey(CHAT_CAPABILITIES)

export const LOG_LEVEL = 'info'
const POSTPONE_MS = 2000
const SET_LEVEL_MS = 2000
const MAX_QUESTIONS = 20

export class CallScopes implements Peer {
  readonly capabilities = CHAT_CAPABILITIES
  readonly #running = new Set<CallInput>()
  /** Owners whose calls ended without an answer: the server may still work on them, and ask. */
  readonly #unanswered = new Set<string>()
  #questions = 0

  async during<T>(input: CallInput, job: () => Promise<T>): Promise<T> {
    this.#running.add(input)
    try {
      return await job()
    } catch (error) {
      if (!isAppError(error, 'child_refused')) this.#unanswered.add(input.caller.owner)
      throw error
    } finally {
      this.#running.delete(input)
    }
  }

  async onRequest(
    _server: string,
    request: PeerRequest,
    signal: AbortSignal,
    postpone: () => void
  ): Promise<RawResult> {
    const ask = request.method === 'elicitation/create' ? this.#call()?.onRequest : undefined
    if (ask === undefined)
      throw new ProtocolError(ProtocolErrorCode.MethodNotFound, 'Nobody can be asked at the moment.')
    if (this.#questions >= MAX_QUESTIONS)
      throw new ProtocolError(ProtocolErrorCode.InternalError, `No more than ${MAX_QUESTIONS} questions at once.`)
    this.#questions++
    const postponing = setInterval(postpone, POSTPONE_MS)
    try {
      return await ask(request, signal)
    } catch (error) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, messageOf(error))
    } finally {
      clearInterval(postponing)
      this.#questions--
    }
  }

  onNotification(_server: string, { method, params = {} }: PeerNotification): void {
    if (method === 'notifications/message') this.#call()?.onLog?.(params)
  }

  onOpened(_server: string, live: OpenedServer): void {
    // A server of the newer revision gets the level with every request.
    if (live.revision?.kind === 'modern' || live.capabilities.logging === undefined) return
    const signal = AbortSignal.timeout(SET_LEVEL_MS)
    const caller = { owner: '', door: 'chat' as const }
    live.request({ caller, method: 'logging/setLevel', params: { level: LOG_LEVEL }, signal }).catch(() => {})
  }

  /** The latest running call, if all calls that the server may be working on belong to one person. */
  #call(): CallInput | undefined {
    const running = [...this.#running]
    const owners = new Set([...running.map(({ caller }) => caller.owner), ...this.#unanswered])
    return owners.size === 1 ? running.findLast(({ onRequest }) => onRequest !== undefined) : undefined
  }
}
