import type { FastifyRequest } from 'fastify'
import { AppError } from '../lib/errors.ts'

const MB = 1024 * 1024

export interface BodyLimits {
  personBytes: number
  totalBytes: number
}

/** Far more than a page sends at once. */
export function bodyLimits(maxUploadBytes: number): BodyLimits {
  const personBytes = Math.max(80 * MB, 3 * maxUploadBytes)
  return { personBytes, totalBytes: 8 * personBytes }
}

/**
 * Limits the bodies of requests that are in memory, for each person and in total. A body counts from the first byte on with the size
 * that was announced, because a client can leave many large ones unfinished for minutes.
 */
export class BodyRoom {
  readonly #limits: BodyLimits
  readonly #taken = new Map<string, number>()
  #total = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /** Returns a function that gives the room back. One body always fits, however large it may be. */
  take(person: string, bytes: number): () => void {
    const mine = this.#taken.get(person) ?? 0
    const { personBytes, totalBytes } = this.#limits
    if ((mine > 0 && mine + bytes > personBytes) || (this.#total > 0 && this.#total + bytes > totalBytes)) {
      const whose = mine > 0 && mine + bytes > personBytes ? 'You are' : 'Others are'
      const message = `${whose} sending too much at once: try again when it has arrived.`
      throw new AppError('unavailable', 'too_much_at_once', message)
    }
    this.#add(person, bytes)
    let isOver = false
    return () => {
      if (!isOver) this.#add(person, -bytes)
      isOver = true
    }
  }

  #add(person: string, bytes: number): void {
    this.#total += bytes
    const mine = (this.#taken.get(person) ?? 0) + bytes
    if (mine > 0) this.#taken.set(person, mine)
    else this.#taken.delete(person)
  }
}

/** Maximum number of bytes that the body of a request may take. */
export function bodyBytes({ method, headers, routeOptions }: FastifyRequest): number {
  if (method === 'GET' || method === 'HEAD') return 0
  const most = routeOptions.bodyLimit ?? MB
  if (headers['transfer-encoding'] !== undefined) return most
  const announced = Number(headers['content-length'] ?? 0)
  return Number.isSafeInteger(announced) ? Math.min(announced, most) : most
}

const MAX_LEVELS = 200

/** Code that walks deeper values would overflow the stack. Not recursive itself, and no slower for wide values than reading them was. */
export function refuseDeep(body: unknown): void {
  if (Buffer.isBuffer(body)) return
  let level = [body]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_LEVELS) throw new AppError('invalid', 'invalid_request', 'The request is nested too deeply.')
    level = level.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []))
  }
}
