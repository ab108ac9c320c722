import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { freePort } from '../../../tests/support/free-port.ts'
import { type OwnRedis, ownRedis } from '../../../tests/support/own-redis.ts'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { Store } from '../store.ts'
import { openRedisStore } from './open-redis-store.ts'

/** A few seconds, and more where others use the machine; far less than nobody's deadline. */
const SOON_MS = 25_000
const UNAVAILABLE = { kind: 'unavailable', code: 'store_unavailable' }

/** Every verb of both ports, for "each of them fails" and "each of them works". */
function verbs({ sessions, events }: Store): (() => Promise<unknown>)[] {
  return [
    () => sessions.now(),
    () => sessions.deploymentId(),
    () => sessions.heartbeat('i', 1000),
    () => sessions.instances(),
    () => sessions.signOff('i'),
    () => sessions.acquire('s', 'h', 1000),
    () => sessions.touch('s', 1, { leaseMs: 1, busy: false, activity: false }),
    () => sessions.release('s', 1),
    () => sessions.reserve('s', 1, 1),
    () => sessions.bind('s', 1, 'c'),
    () => sessions.unbind('s', 1),
    () => sessions.takeIdle('h', { idleMs: 1, leaseMs: 1, limit: 1 }),
    () => sessions.get('s'),
    () => sessions.list(),
    () => sessions.countLive(),
    () => sessions.remove('s', 1),
    () => events.append('s', [{ type: 't', data: {} }]),
    () => events.read('s'),
    () => events.lastSeq('s'),
    () => events.remove('s')
  ]
}

/** As its operator. */
async function tell(port: number, command: string): Promise<void> {
  await once(connect(port, '127.0.0.1').end(`${command}\r\n`).resume(), 'close')
}

describe('a Redis that comes and goes', () => {
  let dir = ''
  let port = 0
  let url = ''
  let redis: OwnRedis | undefined
  let store: Store | undefined

  const start = async () => {
    // "everysec", the default, holds writes back in memory while a slow disk syncs: kill -9 would lose them.
    redis = await ownRedis({ port, dir, args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  }
  const stop = async () => {
    await redis?.kill()
    redis = undefined
  }

  beforeEach(async () => {
    dir = temporaryFolder()
    port = await freePort()
    url = `redis://127.0.0.1:${port}`
    await start()
  })
  afterEach(async () => {
    await store?.close()
    store = undefined
    await stop()
    rmSync(dir, { recursive: true })
  })

  it('fails every verb quickly while it is down and works by itself when it is back, with its data', async () => {
    const lines: string[] = []
    const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
    store = await openRedisStore({ url, logger })
    const opened = store
    for (const verb of verbs(opened)) await verb()
    const acquired = await opened.sessions.acquire('kept', 'h', 60_000)
    await stop()
    await vi.waitFor(() => expect(lines.join('')).toContain('does not answer'), { interval: 10 })
    for (let round = 0; round < 3; round++) {
      const since = performance.now()
      const failures = verbs(opened).map((verb) => expect(verb()).rejects.toMatchObject(UNAVAILABLE))
      await Promise.all(failures)
      expect(performance.now() - since).toBeLessThan(SOON_MS)
    }
    await start()
    await vi.waitFor(() => opened.sessions.now(), { interval: 20 })
    for (const verb of verbs(opened)) await verb()
    expect(await opened.sessions.get('kept')).toEqual(acquired.granted && acquired.record)
    expect(lines.filter((line) => line.includes('does not answer')).length).toBe(1)
    expect(lines.filter((line) => line.includes('answers again')).length).toBe(1)
  })

  it('is waited for at startup when there is patience for it', async () => {
    await stop()
    await expect(openRedisStore({ url, logger: silentLogger })).rejects.toMatchObject(UNAVAILABLE)
    const opening = openRedisStore({ url, logger: silentLogger, patience: { ms: 60_000 } })
    await start()
    store = await opening
    expect(await store.sessions.now()).toBeGreaterThan(0)
  })

  it('is not blamed for an answer that this process was too busy to read', async () => {
    store = await openRedisStore({ url, logger: silentLogger })
    const opened = store
    await opened.sessions.now()
    const failure = opened.sessions.now().catch((error) => error)
    // Give the command time to leave.
    await new Promise((resolve) => setImmediate(resolve))
    const until = performance.now() + 4000
    while (performance.now() < until);
    expect((await failure).where).toMatch(/this server itself stood still for \d{4} ms/)
  })

  it('fails within the deadline when it hangs, and recovers', async () => {
    store = await openRedisStore({ url, logger: silentLogger })
    const opened = store
    redis?.child.kill('SIGSTOP')
    const since = performance.now()
    const failures = verbs(opened).map((verb) => expect(verb()).rejects.toMatchObject(UNAVAILABLE))
    await Promise.all(failures)
    expect(performance.now() - since).toBeLessThan(SOON_MS)
    redis?.child.kill('SIGCONT')
    await vi.waitFor(() => opened.sessions.now(), { interval: 20 })
    for (const verb of verbs(opened)) await verb()
  })

  it('leaves a server that became a replica, and so finds the one that its address leads to now', async () => {
    const next = await ownRedis({ dir })
    let leadsTo = port
    const proxy = createServer((client) => {
      const server = connect(leadsTo, '127.0.0.1')
      client.on('error', () => {}).on('close', () => server.destroy())
      server.on('error', () => {}).on('close', () => client.destroy())
      client.pipe(server).pipe(client)
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    try {
      const address = proxy.address()
      const at = typeof address === 'object' && address ? address.port : 0
      store = await openRedisStore({ url: `redis://127.0.0.1:${at}`, logger: silentLogger })
      const { sessions } = store
      await sessions.heartbeat('i', 60_000)
      // As a managed Redis does it: the name moves, and who is connected stays connected.
      leadsTo = next.port
      await tell(port, `REPLICAOF 127.0.0.1 ${next.port}`)
      await expect(sessions.heartbeat('i', 60_000)).rejects.toMatchObject(UNAVAILABLE)
      await vi.waitFor(() => sessions.heartbeat('i', 60_000), { interval: 20 })
    } finally {
      proxy.close()
      await next.kill()
    }
  })

  it('that is full still lets sessions be held, ended and removed, which makes room again', async () => {
    const full = await ownRedis()
    try {
      store = await openRedisStore({ url: full.url, logger: silentLogger })
      const { sessions, events } = store
      const before = await sessions.acquire('s', 'a', 60_000)
      const large = (i: number) => [{ type: 't', data: { text: `${i}`.padStart(900_000, 'x') } }]
      for (let i = 0; i < 20; i++) await events.append('s', large(i))
      await tell(full.port, 'CONFIG SET maxmemory 10mb')
      await expect(events.append('s', [{ type: 't', data: {} }])).rejects.toThrow('is full')
      await sessions.heartbeat('a', 60_000)
      const epoch = before.granted ? before.record.epoch : 0
      expect(await sessions.touch('s', epoch, { leaseMs: 60_000, busy: false, activity: true })).toBe(true)
      expect(await sessions.acquire('s', 'b', 60_000)).toMatchObject({ granted: true, record: { holder: 'b' } })
      await events.remove('s')
      await vi.waitFor(() => events.append('s', large(0)))
    } finally {
      await full.kill()
    }
  })

  it('never sends an append twice when the answer was lost', async () => {
    let swallow = false
    // Passes everything on, except that one answer gets lost together with its connection.
    const proxy = createServer((client) => {
      const server = connect(port, '127.0.0.1')
      client.on('error', () => {}).on('close', () => server.destroy())
      server.on('error', () => {}).on('close', () => client.destroy())
      client.on('data', (chunk) => server.write(chunk))
      server.on('data', (chunk) => {
        if (!swallow) return client.write(chunk)
        swallow = false
        client.destroy()
      })
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const address = proxy.address()
    const at = typeof address === 'object' && address ? address.port : 0
    store = await openRedisStore({ url: `redis://127.0.0.1:${at}`, logger: silentLogger })
    const { events } = store
    await events.append('s', [{ type: 'first', data: {} }])
    swallow = true
    await expect(events.append('s', [{ type: 'second', data: {} }])).rejects.toMatchObject(UNAVAILABLE)
    const seen = await vi.waitFor(() => events.append('s', [{ type: 'third', data: {} }]), { interval: 10 })
    expect(seen).toMatchObject([{ seq: 3 }])
    expect((await events.read('s')).map((event) => event.type)).toEqual(['first', 'second', 'third'])
    proxy.close()
  })

  it('refuses to open, without a word of the password, when nothing answers or the URL makes no sense', async () => {
    await stop()
    const since = performance.now()
    const opening = openRedisStore({ url: `redis://:hunter2@127.0.0.1:${port}`, logger: silentLogger })
    const error = await opening.catch((reason: Error) => reason)
    expect(error).toMatchObject(UNAVAILABLE)
    expect(String(error)).not.toContain('hunter2')
    expect(String(error)).toContain(`127.0.0.1:${port}`)
    expect(performance.now() - since).toBeLessThan(SOON_MS)
    for (const bad of ['', 'localhost', 'http://localhost', 'redis://']) {
      const refused = openRedisStore({ url: bad, logger: silentLogger })
      await expect(refused).rejects.toMatchObject({ kind: 'invalid', code: 'invalid_redis_url' })
    }
  })

  it('refuses a database that is not there, in place of using the first one', async () => {
    const refused = openRedisStore({ url: `${url}/99`, logger: silentLogger })
    await expect(refused).rejects.toMatchObject({ kind: 'invalid', code: 'invalid_redis_url' })
    await expect(openRedisStore({ url: `${url}/mine`, logger: silentLogger })).rejects.toMatchObject({
      kind: 'invalid'
    })
    store = await openRedisStore({ url: `${url}/15`, logger: silentLogger })
  })

  it('does not open what is no Redis', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const address = silent.address()
    const at = typeof address === 'object' && address ? address.port : 0
    const opening = openRedisStore({ url: `redis://127.0.0.1:${at}`, logger: silentLogger })
    await expect(opening).rejects.toMatchObject(UNAVAILABLE)
    silent.close()
  })

  it('answers unavailable after close', async () => {
    const closed = await openRedisStore({ url, logger: silentLogger })
    await closed.close()
    await closed.close()
    await expect(closed.sessions.now()).rejects.toMatchObject(UNAVAILABLE)
  })
})
