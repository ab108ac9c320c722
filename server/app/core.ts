/** Sessions and what they need: engine, stores, quotas. The app builds on it; tests and benchmarks use it directly. */

import { randomUUID } from 'node:crypto'
import type { Progress } from '../../contract/live.ts'
import { chatLogIds } from '../code/run-log.ts'
import type { Settings } from '../config/settings.ts'
import type { CoreObserver } from '../http/core-metrics.ts'
import type { Logger } from '../lib/logger.ts'
import { observed } from '../lib/observed.ts'
import { ProgressBoard } from '../lib/waiting/progress-board.ts'
import type { SandboxEngine } from '../sandbox/port.ts'
import { Quotas } from '../sessions/access/quotas.ts'
import { SessionAccess } from '../sessions/access/session-access.ts'
import { namedContents } from '../sessions/attachments/stored-file.ts'
import { SessionFeed } from '../sessions/feed/session-feed.ts'
import { UnansweredAppends } from '../sessions/feed/unanswered-appends.ts'
import { SessionManager } from '../sessions/sandboxes/session-manager.ts'
import { DEFAULT_SESSIONS_OPTIONS, type SessionsOptions } from '../sessions/sandboxes/session-options.ts'
import type { ContentStore } from '../storage/checkpoint-store.ts'
import { claimDataDir } from '../storage/claim-data-dir.ts'
import { readDeploymentId } from '../storage/deployment-file.ts'
import { lockDataDir } from '../storage/embedded/data-dir-lock.ts'
import { StoreFormat } from '../storage/format/store-format.ts'
import { takeOver } from '../storage/key-value-store.ts'
import type { CollectorDeps } from '../storage/object-checkpoints/collector.ts'
import { CollectorRounds } from '../storage/object-checkpoints/collector-rounds.ts'
import { observedCheckpoints, observedStore } from '../storage/observed-store.ts'
import type { Patience } from '../storage/redis/redis-client.ts'
import type { Store } from '../storage/store.ts'
import { sessionLost } from '../storage/store-errors.ts'
import { prepareEngine } from './app-lifecycle.ts'
import { BucketWatch } from './bucket-watch.ts'
import { dataPaths } from './data-paths.ts'
import { openEngine } from './engine/open-engine.ts'
import { openBucket, openCheckpoints } from './open-checkpoints.ts'
import { deploymentFileOf, openStore } from './open-store.ts'

/** Without metrics, nobody looks. */
const ignore = () => {}

export type Core = Awaited<ReturnType<typeof createCore>>

function sessionsOptions(settings: Settings): SessionsOptions {
  return {
    ...DEFAULT_SESSIONS_OPTIONS,
    maxSessions: settings.MAX_SESSIONS,
    maxSandboxesPerOwner: settings.MAX_SANDBOXES_PER_OWNER,
    warmPoolSize: settings.WARM_POOL_SIZE,
    network: settings.SANDBOX_NETWORK,
    idleMs: settings.SESSION_IDLE_SECONDS * 1000,
    janitorIntervalMs: settings.JANITOR_INTERVAL_SECONDS * 1000,
    pauseAfterMs: settings.PAUSE_AFTER_SECONDS * 1000,
    retentionMs: settings.RETENTION_DAYS * 86_400_000
  }
}

/** Overrides for tests, benchmarks and the app. */
export interface CoreOverrides {
  sessions?: Partial<SessionsOptions>
  engine?: SandboxEngine
  instanceId?: string
  /** How long to wait for a Redis that does not answer, and a signal that ends the wait. */
  patience?: Patience
  /** Accept the data folder even if Redis knows another one. */
  acceptDataDir?: boolean
  /** Counts what the core does, for metrics. */
  observer?: CoreObserver
}

/** The store and the folder with the sessions' files, which must belong together. */
async function openStorage(settings: Settings, logger: Logger, overrides: CoreOverrides, saves: BucketWatch) {
  const report = saves.before(overrides.observer?.stored)
  const { root: dataDir } = dataPaths(settings.DATA_DIR)
  const file = await deploymentFileOf(settings)
  const bucket = await openBucket(settings, logger, report)
  const offered = (await bucket?.owner())?.id ?? readDeploymentId(file) ?? randomUUID()
  const opening = openStore(settings, logger, { patience: overrides.patience, deploymentId: offered })
  const store = observedStore(await opening, report)
  // The embedded store is inside the folder, so they always belong together. A bucket has a marker of its own.
  const isAccepted = overrides.acceptDataDir === true || !settings.REDIS_URL || bucket !== undefined
  const format = new StoreFormat({ ...store, instanceId: overrides.instanceId })
  try {
    await format.announce()
    await bucket?.claim(store, overrides.acceptDataDir === true)
    const checkpoints = observedCheckpoints(openCheckpoints(settings, store, bucket, logger), report)
    await claimDataDir({ dataDir, file, offered, store, checkpoints, isAccepted })
    if (bucket) saves.watch(bucket, store)
    return { store, checkpoints, bucket, format }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Longer than from one round of the janitor to the next, so that the same instance goes on as long as it lives. */
const CLEANER_MS = 150_000

export async function createCore(settings: Settings, logger: Logger, overrides: CoreOverrides = {}) {
  const dataDir = dataPaths(settings.DATA_DIR).root
  // Instances that share a Redis share the folder too; the embedded store serves one.
  const lock = settings.REDIS_URL ? undefined : lockDataDir(dataDir)
  const { observer, instanceId = randomUUID() } = overrides
  const saves = new BucketWatch()
  const opened = { ...overrides, instanceId }
  const { store, checkpoints, bucket, format } = await openStorage(settings, logger, opened, saves)
  const engine = observed(overrides.engine ?? (await openEngine(settings, logger, !!lock)), observer?.engine ?? ignore)
  const { feed, appends } = openFeed(store, logger)
  const access: SessionAccess = new SessionAccess(store.keyValues, settings, {
    async checkOpen(sessionId, { isCopy }) {
      if (!isCopy && (await checkpoints.has(sessionId))) throw sessionLost()
      await saves.checkOwner()
      await quotas.checkOpen()
    },
    isLost: () => sessions.isEmptied(),
    revoked: (sessionId) => feed.revoked(sessionId)
  })
  const stored = { access, events: store.events, checkpoints, store: store.sessions }
  const quotas: Quotas = new Quotas(stored, settings)
  const sessions: SessionManager = new SessionManager(
    {
      ...{ instanceId, engine, checkpoints, logger },
      store: store.sessions,
      events: store.events,
      ownerOf: (sessionId) => access.ownerOf(sessionId),
      ...appends.hooks,
      emptied: async () => feed.emptied(),
      isAlone: lock !== undefined,
      forked: observer?.forked,
      cleansForAll: () => takeOver({ ...store, instanceId }, 'janitor', CLEANER_MS),
      forgotten: async (sessionId) => {
        feed.gone(sessionId, await access.forget(sessionId))
      }
    },
    { ...sessionsOptions(settings), ...overrides.sessions }
  )
  const others = { ...namedIn(store), sessionIds: () => access.sessionIds(), instanceId, logger }
  const collecting = bucket && new CollectorRounds(bucket.collector(store, others), logger)
  const progress = new ProgressBoard<Progress['stage']>('engine', 'Looking for the container engine…')
  const stopping = new AbortController()
  return {
    engine,
    store,
    /** The files of conversations. */
    contents: checkpoints satisfies ContentStore,
    ...{ checkpoints, sessions, access, quotas, feed, appends, progress, saves },
    /** Where the files are, if they are not in the data folder. */
    ...{ bucket, format },
    /** Starts serving, and builds the image in the background if necessary. */
    async start(): Promise<void> {
      // The lock proves that every earlier owner of this folder is dead, so don't wait for its leases to expire.
      if (lock) for (const gone of await store.sessions.instances()) await store.sessions.signOff(gone)
      void prepareEngine({ engine, progress, sessions }, logger, stopping.signal).then(() => sessions.pool.fill())
      await sessions.start()
      collecting?.start()
    },
    async stop(): Promise<void> {
      stopping.abort()
      collecting?.stop()
      appends.close()
      await sessions.stop()
      await engine.close()
      bucket?.objects.close()
      await store.close()
      lock?.release()
    }
  }
}

function openFeed({ events }: Store, logger: Logger) {
  const feed = new SessionFeed((error) => logger.error({ err: error }, 'A listener of the feed failed.'))
  const found = (sessionId: string) => feed.late(sessionId)
  return { feed, appends: new UnansweredAppends({ events, publish: feed.stored, found, logger }) }
}

function namedIn({ events }: Store): Pick<CollectorDeps, 'namedContents'> {
  return { namedContents: (sessionId, hashes) => namedContents(events, chatLogIds([sessionId]), hashes) }
}
