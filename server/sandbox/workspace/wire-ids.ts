import { randomBytes } from 'node:crypto'
import type { JSONRPCMessage, ProgressToken, RequestId } from '@modelcontextprotocol/client'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'

const MAX_PENDING = 1024
const MAX_CANCELLED = 256

interface Pending {
  wireId: string
  id: RequestId
  wireToken: string | undefined
}

/**
 * Replaces the ids of outgoing messages with random ones and maps them back, so that a process that can only write into the
 * stream can't answer a request. It tracks pending requests: an id is valid for one answer.
 */
export class WireIds {
  readonly #byWireId = new Map<string, Pending>()
  readonly #byId = new Map<RequestId, Pending>()
  readonly #tokens = new Map<string, ProgressToken>()
  /** The answers to these may still arrive: they are late, but not forged. */
  readonly #cancelled = new BoundedMap<string, true>(MAX_CANCELLED)

  /** The message to send, or null if it is no longer needed. */
  outgoing(message: JSONRPCMessage): Record<string, unknown> | null {
    if (!('method' in message)) return null
    if ('id' in message) return this.#request(message.id, message)
    if (message.method !== 'notifications/cancelled') return { ...message }
    const requestId = message.params?.requestId
    const pending =
      typeof requestId === 'string' || typeof requestId === 'number' ? this.#byId.get(requestId) : undefined
    if (!pending) return null
    this.#drop(pending)
    this.#cancelled.set(pending.wireId, true)
    return { ...message, params: { ...message.params, requestId: pending.wireId } }
  }

  /** Returns the request's own id, once; undefined for every other answer. */
  answered(wireId: string): RequestId | undefined {
    const pending = this.#byWireId.get(wireId)
    if (!pending) return undefined
    this.#drop(pending)
    return pending.id
  }

  /** Whether we cancelled the request with this id, so that a late answer is expected. Valid for one answer. */
  wasCancelled(wireId: string): boolean {
    return this.#cancelled.delete(wireId)
  }

  tokenOf(wireToken: unknown): ProgressToken | undefined {
    return typeof wireToken === 'string' ? this.#tokens.get(wireToken) : undefined
  }

  forget(message: JSONRPCMessage): void {
    const pending = 'method' in message && 'id' in message ? this.#byId.get(message.id) : undefined
    if (pending) this.#drop(pending)
  }

  pending(): string[] {
    return [...this.#byWireId.keys()]
  }

  /**
   * Finds the pending request that a line answers, from the line's two ends. Ids can't be guessed, so finding one is proof
   * enough.
   */
  findPending(head: Buffer, tail: Buffer): string | undefined {
    return this.pending().find((wireId) => head.includes(wireId) || tail.includes(wireId))
  }

  /** Whether a line is a progress notification, or an answer that nobody waits for any more. */
  isPastOrProgress(head: Buffer, tail: Buffer): boolean {
    const seen = (id: string) => head.includes(id) || tail.includes(id)
    return [...this.#tokens.keys(), ...this.#cancelled.keys()].some(seen)
  }

  clear(): void {
    this.#byWireId.clear()
    this.#byId.clear()
    this.#tokens.clear()
    this.#cancelled.clear()
  }

  #request(id: RequestId, message: { params?: unknown }): Record<string, unknown> {
    if (this.#byWireId.size >= MAX_PENDING || this.#byId.has(id)) {
      const message = `The sandbox already has ${this.#byWireId.size} calls to answer.`
      throw new AppError('unavailable', 'too_many_calls', message)
    }
    const params = isRecord(message.params) ? message.params : undefined
    const meta = isRecord(params?._meta) ? params._meta : undefined
    const token = meta?.progressToken
    const withToken = typeof token === 'string' || typeof token === 'number'
    const pending: Pending = { wireId: randomId(), id, wireToken: withToken ? randomId() : undefined }
    this.#byWireId.set(pending.wireId, pending)
    this.#byId.set(id, pending)
    if (pending.wireToken === undefined || !withToken) return { ...message, id: pending.wireId }
    this.#tokens.set(pending.wireToken, token)
    const newMeta = { ...meta, progressToken: pending.wireToken }
    return { ...message, id: pending.wireId, params: { ...params, _meta: newMeta } }
  }

  #drop(pending: Pending): void {
    this.#byWireId.delete(pending.wireId)
    this.#byId.delete(pending.id)
    if (pending.wireToken !== undefined) this.#tokens.delete(pending.wireToken)
  }
}

function randomId(): string {
  return randomBytes(16).toString('base64url')
}
