/**
 * The system under test of a walk: an engine and a Redis of its own, several server processes, and a proxy in front. Starts and stops them;
 * the faults are in `faults.ts`. The machine's own engine is not touched.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Dockerode from 'dockerode'
import { openEngine } from '../../server/app/engine/open-engine.ts'
import { loadSettings } from '../../server/config/load-settings.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { openRedisStore } from '../../server/storage/redis/open-redis-store.ts'
import type { Store } from '../../server/storage/store.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { openTestBucket, type TestBucket } from '../support/object-service.ts'
import { copyImage, type PrivateEngine, startPrivateEngine } from '../support/private-dockerd.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type FrontProxy, openFrontProxy } from './front-proxy.ts'
import { Instance } from './instance.ts'

export interface World {
  engine: PrivateEngine
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

/** An engine with the image in it; takes a while, and serves many walks. */
export async function startEngine(): Promise<PrivateEngine> {
  const ours = await openEngine(loadSettings({ env: {} }), silentLogger)
  const image = await ours.ensureImage()
  await ours.close()
  const engine = await startPrivateEngine()
  try {
    await copyImage(new Dockerode(), engine.docker, image)
    return engine
  } catch (error) {
    await engine.dispose()
    throw error
  }
}

export async function openWorld(engine: PrivateEngine, options: WorldOptions = {}): Promise<World> {
  const dir = temporaryFolder()
  const redis = await TestRedis.open(dir)
  const bucket = options.isApart ? await openTestBucket() : undefined
  const env = {
    REDIS_URL: redis.url,
    DATA_DIR: join(dir, 'data'),
    DOCKER_HOST: `unix://${engine.socketPath}`,
    LLM_PROVIDER: 'demo',
    WARM_POOL_SIZE: '1',
    JANITOR_INTERVAL_SECONDS: '1',
    // An idle session gives up its fork.
    PAUSE_AFTER_SECONDS: '5',
    SANDBOX_WORKSPACE_MB: '16',
    LOG_LEVEL: 'warn',
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
    engine,
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
      await engine.start()
      await engine.removeContainers()
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
