import { randomUUID } from 'node:crypto'
import { validSessionId } from '../session-id.ts'
import {
  type AcquireResult,
  ENDED_KEPT_MS,
  type SessionRecord,
  type SessionStore,
  type StoreOrigin
} from '../session-store.ts'
import type { RedisClient } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'
import * as scripts from './session-scripts.ts'

const LIST_PAGE = 500

export class RedisSessionStore implements SessionStore {
  readonly #client: RedisClient
  readonly #keys: RedisKeys
  /** The id that an emptied Redis gets back. */
  #deploymentId: string

  constructor(client: RedisClient, keys: RedisKeys, rememberedId: string = randomUUID()) {
    this.#client = client
    this.#keys = keys
    this.#deploymentId = rememberedId
  }

  async now(): Promise<number> {
    return Number(await this.#client.run(scripts.now, []))
  }

  async deploymentId(): Promise<string> {
    const id = await this.#client.run(scripts.deploymentId, [this.#keys.deployment], [this.#deploymentId])
    this.#deploymentId = String(id)
    return this.#deploymentId
  }

  async origin(): Promise<StoreOrigin> {
    const reply = String(await this.#client.run(scripts.origin, [this.#keys.origin], [randomUUID()]))
    const [id = '', at] = reply.split(' ')
    return { id, at: Number(at) }
  }

  async heartbeat(instanceId: string, ttlMs: number): Promise<void> {
    await this.#client.run(scripts.heartbeat, [this.#keys.instances, this.#keys.ended], [instanceId, ttlMs])
  }

  async instances(): Promise<string[]> {
    return (await this.#allInstances()).alive
  }

  async endedInstances(): Promise<string[]> {
    return (await this.#allInstances()).ended
  }

  async signOff(instanceId: string): Promise<void> {
    const { instances, index, ended, sessionPrefix, sessionSuffix } = this.#keys
    await this.#client.run(scripts.signOff, [instances, index, ended], [instanceId, sessionPrefix, sessionSuffix])
  }

  async acquire(sessionId: string, holder: string, leaseMs: number): Promise<AcquireResult> {
    const id = encodeId(sessionId)
    const { index, live, epochFloor } = this.#keys
    const keys = [this.#keys.session(id), index, live, epochFloor]
    const reply = asArray(await this.#client.run(scripts.acquire, keys, [id, holder, leaseMs]))
    if (reply.length === 2) return { granted: false, holder: String(reply[0]), retryInMs: Number(reply[1]) }
    return { granted: true, record: toRecord(reply) }
  }

  async touch(
    sessionId: string,
    epoch: number,
    options: { leaseMs: number; busy: boolean; activity: boolean }
  ): Promise<boolean> {
    const args = [options.leaseMs, Number(options.busy), Number(options.activity)]
    return (await this.#fenced(scripts.touch, sessionId, epoch, args)) === 1
  }

  async release(sessionId: string, epoch: number): Promise<void> {
    await this.#client.run(scripts.release, [this.#keys.session(encodeId(sessionId))], [epoch])
  }

  async reserve(sessionId: string, epoch: number, maxLive: number): Promise<'ok' | 'full' | 'lost'> {
    const reply = await this.#fenced(scripts.reserve, sessionId, epoch, [maxLive])
    return reply === 'ok' || reply === 'full' ? reply : 'lost'
  }

  async bind(sessionId: string, epoch: number, containerId: string): Promise<boolean> {
    return (await this.#fenced(scripts.bind, sessionId, epoch, [containerId])) === 1
  }

  async unbind(sessionId: string, epoch: number): Promise<boolean> {
    return (await this.#fenced(scripts.unbind, sessionId, epoch, [])) === 1
  }

  async takeIdle(
    holder: string,
    options: { idleMs: number; leaseMs: number; limit: number }
  ): Promise<SessionRecord[]> {
    const { live, epochFloor, sessionPrefix, sessionSuffix } = this.#keys
    const args = [sessionPrefix, sessionSuffix, holder, options.idleMs, options.leaseMs, options.limit]
    return toRecords(await this.#client.run(scripts.takeIdle, [live, epochFloor], args))
  }

  async get(sessionId: string): Promise<SessionRecord | null> {
    const reply = asArray(await this.#client.run(scripts.get, [this.#keys.session(encodeId(sessionId))]))
    return reply[0] === null ? null : toRecord(reply)
  }

  /** Reads in pages, so that many sessions don't block Redis. A concurrent change may or may not be seen. */
  async list(): Promise<SessionRecord[]> {
    const { index, sessionPrefix, sessionSuffix } = this.#keys
    const records: SessionRecord[] = []
    for (let after = '-'; ; ) {
      const args = [sessionPrefix, sessionSuffix, after, LIST_PAGE]
      const page = toRecords(await this.#client.run(scripts.listPage, [index], args))
      records.push(...page)
      const last = page.at(-1)
      if (!last || page.length < LIST_PAGE) return records
      after = `(${encodeId(last.sessionId)}`
    }
  }

  async countLive(): Promise<number> {
    return Number(await this.#client.run(scripts.countLive, [this.#keys.live]))
  }

  async listLive(): Promise<SessionRecord[]> {
    const { live, sessionPrefix, sessionSuffix } = this.#keys
    return toRecords(await this.#client.run(scripts.listLive, [live], [sessionPrefix, sessionSuffix]))
  }

  async count(): Promise<number> {
    return Number(await this.#client.run(scripts.count, [this.#keys.index]))
  }

  async remove(sessionId: string, epoch: number): Promise<boolean> {
    const id = encodeId(sessionId)
    const { index, live, epochFloor } = this.#keys
    const keys = [this.#keys.session(id), index, live, epochFloor]
    return (await this.#client.run(scripts.remove, keys, [id, epoch])) === 1
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #allInstances(): Promise<{ alive: string[]; ended: string[] }> {
    const { instances, ended } = this.#keys
    const reply = asArray(await this.#client.run(scripts.instances, [instances, ended], [ENDED_KEPT_MS]))
    return { alive: asArray(reply[0]).map(String), ended: asArray(reply[1]).map(String) }
  }

  async #fenced(
    script: typeof scripts.touch,
    sessionId: string,
    epoch: number,
    args: (string | number)[]
  ): Promise<unknown> {
    const id = encodeId(sessionId)
    return await this.#client.run(script, [this.#keys.session(id), this.#keys.live], [id, epoch, ...args])
  }
}

/** Ids are untrusted. After encoding, none can break out of the braces in its key. */
export function encodeId(sessionId: string): string {
  return encodeURIComponent(validSessionId(sessionId))
}

function asArray(reply: unknown): unknown[] {
  return Array.isArray(reply) ? reply : []
}

function toRecords(reply: unknown): SessionRecord[] {
  return asArray(reply).map((fields) => toRecord(asArray(fields)))
}

function toRecord(fields: unknown[]): SessionRecord {
  const [id, epoch, holder, leaseUntil, busy, live, containerId, createdAt, activeAt] = fields.map(String)
  return {
    sessionId: decodeURIComponent(id ?? ''),
    epoch: Number(epoch),
    holder: holder || null,
    leaseUntil: Number(leaseUntil),
    busy: busy === '1',
    live: live === '1',
    containerId: containerId || null,
    createdAt: Number(createdAt),
    activeAt: Number(activeAt)
  }
}
