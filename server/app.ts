/** The composition root: the only file that constructs adapters. Two steps, so that tests and figures can have the core alone. */
import { randomUUID } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { Settings } from './config/settings.ts'
import { createHttpServer } from './http/create-http-server.ts'
import type { HealthCheck } from './http/health.ts'
import { AppError, messageOf } from './lib/errors.ts'
import type { Logger } from './lib/logger.ts'
import { createDockerEngine } from './sandbox/docker/docker-engine.ts'
import type { SandboxEngine, SandboxLimits } from './sandbox/port.ts'
import { SessionManager } from './sessions/session-manager.ts'
import { DEFAULT_SESSIONS_OPTIONS, type SessionsOptions } from './sessions/session-options.ts'
import { openCheckpointStore } from './storage/checkpoints/checkpoint-files.ts'
import { lockDataDir } from './storage/embedded/data-dir-lock.ts'
import { openEmbeddedStore } from './storage/embedded/open-embedded-store.ts'
import { openRedisStore } from './storage/redis/open-redis-store.ts'
import type { Store } from './storage/store.ts'

export interface Core {
  engine: SandboxEngine
  store: Store
  sessions: SessionManager
  /** Builds the image if need be, then opens for business; resolves when the sessions are served, not when the image is there. */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface App extends Core {
  /** Where it listens, once started. */
  url(): string
}

export function sandboxLimits(settings: Settings): SandboxLimits {
  return {
    memoryMb: settings.SANDBOX_MEMORY_MB,
    cpus: settings.SANDBOX_CPUS,
    pids: settings.SANDBOX_PIDS,
    workspaceMb: settings.SANDBOX_WORKSPACE_MB,
    network: settings.SANDBOX_NETWORK,
    ...(settings.SANDBOX_RUNTIME ? { runtime: settings.SANDBOX_RUNTIME } : {})
  }
}

export function openEngine(settings: Settings, logger: Logger): SandboxEngine {
  return createDockerEngine({ limits: sandboxLimits(settings), image: settings.SANDBOX_IMAGE, logger })
}

export async function openStore(settings: Settings, logger: Logger): Promise<Store> {
  if (settings.REDIS_URL) return openRedisStore({ url: settings.REDIS_URL, logger })
  return openEmbeddedStore({ dataDir: resolve(settings.DATA_DIR), logger })
}

function sessionsOptions(settings: Settings): SessionsOptions {
  return {
    ...DEFAULT_SESSIONS_OPTIONS,
    maxSessions: settings.MAX_SESSIONS,
    warmPoolSize: settings.WARM_POOL_SIZE,
    idleMs: settings.SESSION_IDLE_SECONDS * 1000,
    janitorIntervalMs: settings.JANITOR_INTERVAL_SECONDS * 1000,
    pauseAfterMs: settings.PAUSE_AFTER_SECONDS * 1000,
    retentionMs: settings.RETENTION_DAYS * 86_400_000
  }
}

/** What tests and figures put in place of what the settings say. */
export interface CoreOverrides {
  sessions?: Partial<SessionsOptions>
  engine?: SandboxEngine
}

export async function createCore(settings: Settings, logger: Logger, overrides: CoreOverrides = {}): Promise<Core> {
  const dataDir = resolve(settings.DATA_DIR)
  // Instances that share a Redis share the folder too; the embedded store serves one.
  const lock = settings.REDIS_URL ? undefined : lockDataDir(dataDir)
  const store = await openStore(settings, logger)
  const engine = overrides.engine ?? openEngine(settings, logger)
  const checkpoints = openCheckpointStore({
    dir: join(dataDir, 'checkpoints'),
    maxSessionBytes: settings.SANDBOX_WORKSPACE_MB * 4 * 1024 * 1024,
    logger
  })
  const sessions = new SessionManager(
    {
      instanceId: randomUUID(),
      engine,
      store: store.sessions,
      events: store.events,
      checkpoints,
      logger,
      publish: () => {}
    },
    { ...sessionsOptions(settings), ...overrides.sessions }
  )
  return {
    engine,
    store,
    sessions,
    async start() {
      // The lock says that every earlier owner of this folder is dead: nobody has to wait for its leases.
      if (lock) for (const gone of await store.sessions.instances()) await store.sessions.farewell(gone)
      const report = (line: string) => logger.info(line)
      engine.ensureImage(report).then(
        () => sessions.pool.fill(),
        (error) => logger.error({ err: error }, `The sandbox image is not ready: ${messageOf(error)}`)
      )
      await sessions.start()
    },
    async stop() {
      await sessions.stop()
      await engine.close()
      await store.close()
      lock?.release()
    }
  }
}

export async function createApp(settings: Settings, logger: Logger): Promise<App> {
  const core = await createCore(settings, logger)
  const server = createHttpServer({ healthChecks: healthChecks(core) })
  let url = ''
  return {
    ...core,
    url: () => url,
    async start() {
      url = await server.listen({ port: settings.PORT, host: settings.HOST })
      await core.start()
    },
    async stop() {
      await server.close()
      await core.stop()
    }
  }
}

function healthChecks({ engine, store }: Core): Record<string, HealthCheck> {
  const tell = async (check: () => Promise<string>): ReturnType<HealthCheck> => {
    try {
      return { ok: true, detail: await check() }
    } catch (error) {
      return { ok: false, detail: messageOf(error) }
    }
  }
  return {
    engine: () => tell(async () => `Docker ${(await engine.status()).version}`),
    store: () => tell(async () => `deployment ${await store.sessions.deploymentId()}`),
    image: () =>
      tell(async () => {
        if (!(await engine.hasImage()))
          throw new AppError('unavailable', 'image_missing', 'The sandbox image is being built.')
        return 'ready'
      })
  }
}
