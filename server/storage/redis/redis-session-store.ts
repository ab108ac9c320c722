import { randomUUID } from 'node:crypto'
import { validSessionId } from '../session-id.ts'
import { ENDED_KEPT_MS, type SessionRecord, type SessionStore } from '../session-store.ts'
import type { RedisClient } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'
import type { Script } from './scripts.ts'
import * as scripts from './session-scripts.ts'

const LIST_PAGE = 500

/** `deploymentId` is the id that an emptied Redis gets back. */
export function redisSessionStore(
  client: RedisClient,
  keys: RedisKeys,
  deploymentId: string = randomUUID()
): SessionStore {
  const { instances, ended, forks, index, live, epochFloor, sessionPrefix, sessionSuffix } = keys
  const around = [sessionPrefix, sessionSuffix]
  let knownId = deploymentId
  const fenced = (script: Script, sessionId: string, epoch: number, ...args: (string | number)[]) => {
    const id = encodeId(sessionId)
    return client.run(script, [keys.session(id), live, forks, instances], [id, epoch, ...args])
  }
  const allInstances = async () => {
    const [alive, over] = asArray(await client.run(scripts.instances, [instances, ended], [ENDED_KEPT_MS]))
    return { alive: asArray(alive).map(String), ended: asArray(over).map(String) }
  }
  return {
    now: async () => Number(await client.run(scripts.now, [])),
    async deploymentId() {
      knownId = String(await client.run(scripts.deploymentId, [keys.deployment], [knownId]))
      return knownId
    },
    async origin() {
      const [id = '', at] = String(await client.run(scripts.origin, [keys.origin], [randomUUID()])).split(' ')
      return { id, at: Number(at) }
    },
    heartbeat: async (instanceId, ttlMs) =>
      void (await client.run(scripts.heartbeat, [instances, ended], [instanceId, ttlMs])),
    instances: async () => (await allInstances()).alive,
    endedInstances: async () => (await allInstances()).ended,
    signOff: async (instanceId) =>
      void (await client.run(scripts.signOff, [instances, index, ended, forks], [instanceId, ...around])),
    async acquire(sessionId, holder, leaseMs) {
      const id = encodeId(sessionId)
      const names = [keys.session(id), index, live, epochFloor]
      const reply = asArray(await client.run(scripts.acquire, names, [id, holder, leaseMs]))
      if (reply.length === 2) return { granted: false, holder: String(reply[0]), retryInMs: Number(reply[1]) }
      return { granted: true, record: toRecord(reply) }
    },
    touch: async (sessionId, epoch, { leaseMs, busy, activity }) =>
      (await fenced(scripts.touch, sessionId, epoch, leaseMs, Number(busy), Number(activity))) === 1,
    visit: async (sessionId) => void (await fenced(scripts.visit, sessionId, 0)),
    release: async (sessionId, epoch) =>
      void (await client.run(scripts.release, [keys.session(encodeId(sessionId))], [epoch])),
    reserveForks: async (instanceId, count, maxLive) =>
      (await client.run(scripts.reserveForks, [forks, instances, live], [instanceId, count, maxLive])) === 1,
    reserve: async (sessionId, epoch, maxLive) => outcomeOf(await fenced(scripts.reserve, sessionId, epoch, maxLive)),
    bind: async (sessionId, epoch, containerId) => (await fenced(scripts.bind, sessionId, epoch, containerId)) === 1,
    unbind: async (sessionId, epoch) => (await fenced(scripts.unbind, sessionId, epoch)) === 1,
    takeIdle: async (holder, { idleMs, leaseMs, limit }) =>
      toRecords(await client.run(scripts.takeIdle, [live, epochFloor], [...around, holder, idleMs, leaseMs, limit])),
    async get(sessionId) {
      const reply = asArray(await client.run(scripts.get, [keys.session(encodeId(sessionId))]))
      return reply[0] === null ? null : toRecord(reply)
    },
    /** Reads in pages, so that many sessions don't block Redis. A concurrent change may or may not be seen. */
    async list() {
      const records: SessionRecord[] = []
      for (let after = '-'; ; ) {
        const page = toRecords(await client.run(scripts.listPage, [index], [...around, after, LIST_PAGE]))
        records.push(...page)
        const last = page.at(-1)
        if (!last || page.length < LIST_PAGE) return records
        after = `(${encodeId(last.sessionId)}`
      }
    },
    countLive: async () => Number(await client.run(scripts.size, [live])),
    listLive: async () => toRecords(await client.run(scripts.listLive, [live], around)),
    count: async () => Number(await client.run(scripts.size, [index])),
    async remove(sessionId, epoch) {
      const id = encodeId(sessionId)
      return (await client.run(scripts.remove, [keys.session(id), index, live, epochFloor], [id, epoch])) === 1
    },
    close: () => client.close()
  }
}

function outcomeOf(reply: unknown): 'ok' | 'full' | 'lost' {
  return reply === 'ok' || reply === 'full' ? reply : 'lost'
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
