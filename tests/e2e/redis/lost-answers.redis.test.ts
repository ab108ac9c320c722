import { randomUUID } from 'node:crypto'
import { connect, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type App, createApp } from '../../../server/app/app.ts'
import { loadSettings } from '../../../server/config/load-settings.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import { openRedisStore } from '../../../server/storage/redis/open-redis-store.ts'
import { type Client, connectClient } from '../../support/client.ts'
import { freePort } from '../../support/free-port.ts'
import { PATIENCE_MS } from '../../support/patience-ms.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { testRedisEnv } from '../../support/test-redis.ts'

/** Stands between a server and Redis. Swallows the answers to the next command with these words, and all after it on that connection. */
class LossyWay {
  losing: string | undefined
  lost = 0
  readonly #server: Server
  readonly port: number

  constructor(port: number, to: { host: string; port: number }) {
    this.port = port
    this.#server = createServer((client) => {
      const redis = connect(to)
      let isLost = false
      client.on('data', (chunk) => {
        if (this.losing !== undefined && chunk.includes(this.losing)) {
          this.losing = undefined
          this.lost += 1
          isLost = true
        }
        redis.write(chunk)
      })
      redis.on('data', (chunk) => void (isLost || client.write(chunk)))
      for (const [one, other] of [
        [client, redis],
        [redis, client]
      ] as const) {
        one.on('error', () => {})
        one.on('close', () => other.destroy())
      }
    })
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, '127.0.0.1', resolve))
  }

  close(): void {
    this.#server.close()
  }
}

let way: LossyWay
let app: App
const log: string[] = []
const clients: Client[] = []
let env: { REDIS_URL: string; DEPLOYMENT: string }

beforeAll(async () => {
  env = await testRedisEnv()
  const { hostname, port, pathname } = new URL(env.REDIS_URL)
  way = new LossyWay(await freePort(), { host: hostname, port: Number(port) })
  await way.open()
  const own = { DATA_DIR: temporaryFolder(), PORT: '0', HOST: '127.0.0.1', WARM_POOL_SIZE: '0', LLM_PROVIDER: 'demo' }
  const settings = loadSettings({ env: { ...env, ...own, REDIS_URL: `redis://127.0.0.1:${way.port}${pathname}` } })
  app = await createApp(settings, recordingLogger(log))
  await app.start()
})
afterAll(async () => {
  for (const client of clients) client.close()
  await app?.stop()
  way?.close()
})

async function opened(id: string): Promise<Client> {
  const client = connectClient(app.url(), id)
  clients.push(client)
  await client.snapshot()
  return client
}

describe('a client that only listens', () => {
  it('gets events whose append was carried out but never answered, and the log has them', async () => {
    const client = await opened(`lost-${randomUUID()}`)
    way.losing = 'turn:end'
    const { turnId } = await client.ask('message', 'hello')
    await client.wait('turn:end')
    expect(way.lost).toBe(1)
    const ended = () => log.filter((line) => line.includes('"Turn ended."') && line.includes(`"turnId":"${turnId}"`))
    await vi.waitFor(() => expect(ended()).toHaveLength(1), { timeout: PATIENCE_MS, interval: 50 })
    const stored = client.seen.filter(({ data }) => typeof data.at === 'number').map(({ data }) => data.seq)
    // All of them, each once. On a busy machine there may be a notice too.
    expect(stored).toEqual(stored.map((_, at) => at + 2))
    expect(client.all('turn:end')).toHaveLength(1)
  })

  it('gets what an instance stored that died before it could tell anyone', async () => {
    const id = `silent-${randomUUID()}`
    const client = await opened(id)
    const store = await openRedisStore({ url: env.REDIS_URL, deployment: env.DEPLOYMENT, logger: silentLogger })
    try {
      const data = { code: 'test_notice', message: 'Stored in silence.' }
      await store.events.append(id, [{ type: 'session:notice', data }])
    } finally {
      await store.close()
    }
    expect(await client.wait('session:notice')).toMatchObject({ code: 'test_notice' })
  })
})
