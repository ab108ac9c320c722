/**
 * The system under test of a walk: a ground for sandboxes, a Redis of its own, several server processes, and a proxy in front. Starts and
 * stops them; the faults are in `faults.ts` and beside the grounds.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { silentLogger } from '../../server/lib/logger.ts'
import { openRedisStore } from '../../server/storage/redis/open-redis-store.ts'
import type { Store } from '../../server/storage/store.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { openTestBucket, type TestBucket } from '../support/object-service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import type { Faults } from './faults.ts'
import { type FrontProxy, openFrontProxy } from './front-proxy.ts'
import { Instance } from './instance.ts'
import type { Evidence } from './invariants.ts'

/** Where the sandboxes run. Takes a while to start, and serves many walks. */
export interface Ground {
  /** The settings of a server that uses it. */
  env: Record<string, string>
  /** All faults of a walk on it. */
  faults: Faults
  /** The sandboxes that are there, except those that belong to no instance yet. */
  sandboxes(): Promise<Evidence['strays']>
  /** Repairs it, and removes every sandbox. */
  reset(): Promise<void>
  dispose(): Promise<void>
}

export interface World {
  ground: Ground
  redis: TestRedis
  instances: Instance[]
  front: FrontProxy
  /** Where the files are, if the instances share no folder. */
  bucket: TestBucket | undefined
  dir: string
  openStore(): Promise<Store>
  close(): Promise<void>
}

export interface WorldOptions {
  instances?: number
  /** A bug to plant into the servers, by name (`planted-bugs.ts`). */
  bug?: string | undefined
  env?: Record<string, string>
  /** Each instance has its own folder, and the files are in a bucket. */
  isApart?: boolean | undefined
}

export async function openWorld(ground: Ground, options: WorldOptions = {}): Promise<World> {
  const dir = temporaryFolder()
  const redis = await TestRedis.open(dir)
  const bucket = options.isApart ? await openTestBucket() : undefined
  const env = {
    REDIS_URL: redis.url,
    DATA_DIR: join(dir, 'data'),
    LLM_PROVIDER: 'demo',
    WARM_POOL_SIZE: '1',
    JANITOR_INTERVAL_SECONDS: '1',
    // An idle session gives up its fork.
    PAUSE_AFTER_SECONDS: '5',
    SANDBOX_WORKSPACE_MB: '16',
    LOG_LEVEL: 'warn',
    ...ground.env,
    ...bucket?.env,
    ...options.env
  }
  const ports = await Promise.all(Array.from({ length: options.instances ?? 2 }, freePort))
  const instances = ports.map((port) => {
    const own = bucket ? { ...env, DATA_DIR: join(dir, `data-${port}`) } : env
    return new Instance(port, dir, own, options.bug)
  })
  const front = await openFrontProxy(() => instances.filter(({ isUp }) => isUp).map(({ port }) => port))
  await Promise.all(instances.map((instance) => instance.start()))
  return {
    ground,
    redis,
    instances,
    front,
    bucket,
    dir,
    openStore: () => openRedisStore({ url: redis.url, logger: silentLogger }),
    async close() {
      await front.close()
      await Promise.all(instances.map((instance) => instance.end('SIGKILL')))
      await redis.end('SIGKILL')
      await bucket?.close()
      await ground.reset()
      rmSync(dir, { recursive: true, force: true })
    }
  }
}

/** Writes everything to disk before it acknowledges it, so what it has accepted survives a kill. */
class TestRedis {
  readonly #port: number
  readonly #dir: string
  #child: ChildProcess | undefined

  private constructor(port: number, dir: string) {
    this.#port = port
    this.#dir = dir
  }

  static async open(dir: string): Promise<TestRedis> {
    const redis = new TestRedis(await freePort(), dir)
    await redis.start()
    return redis
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  async start(): Promise<void> {
    if (this.#child) return
    const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
    const args = ['--port', String(this.#port), '--bind', '127.0.0.1', '--dir', this.#dir, ...durable]
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] })
    this.#child = child
    let said = ''
    child.stdout.on('data', (chunk) => {
      said = (said + chunk).slice(-2000)
    })
    await eventually('Redis answers', () => said.includes('Ready to accept connections'))
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill(signal)
    await exited
  }
}

export type { TestRedis }
