/** The composition root: the only file that constructs adapters. Two steps, so that tests and figures can have the core alone. */
import { randomUUID } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { Progress } from '../../contract/live.ts'
import type { Audit } from '../audit/audit.ts'
import { LOCAL_OWNER } from '../calls/caller.ts'
import { dotenvWithSecrets } from '../config/load-settings.ts'
import { quotaLimits } from '../config/quota-limits.ts'
import { sandboxLimits } from '../config/sandbox-limits.ts'
import type { Settings } from '../config/settings.ts'
import { openHttpDoor } from '../gateway/doors/http-door.ts'
import { openExposedHttp } from '../gateway/expose/http/exposed-http.ts'
import type { CoreObserver } from '../http/core-metrics.ts'
import { createHttpServer } from '../http/create-http-server.ts'
import { limitedMcp, mcpLimit } from '../http/mcp-limit.ts'
import { createMetrics } from '../http/metrics.ts'
import { packageRoot } from '../lib/files/package-root.ts'
import type { Logger } from '../lib/logger.ts'
import { observed } from '../lib/observed.ts'
import { createRefusals, type ReportRefusal } from '../lib/refusals.ts'
import { ProgressBoard } from '../lib/waiting/progress-board.ts'
import { OWNER_COOKIE, readCookie } from '../lib/web/browser-proof.ts'
import { clientAddresses } from '../lib/web/client-address.ts'
import { observedModels } from '../models/observed-models.ts'
import type { Models } from '../models/port.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import { createDefinitionGuard, type DefinitionGuard } from '../policy/definition-guard.ts'
import { createDockerEngine } from '../sandbox/docker/docker-engine.ts'
import type { SandboxEngine } from '../sandbox/port.ts'
import { AdminAccess } from '../sessions/access/admin-access.ts'
import { InstanceAccess } from '../sessions/access/instance-access.ts'
import { OwnerAccess } from '../sessions/access/owner-access.ts'
import { Quotas } from '../sessions/access/quotas.ts'
import { ownerName, SessionAccess, sessionLost } from '../sessions/access/session-access.ts'
import { Chat } from '../sessions/chat/chat.ts'
import { logSessions } from '../sessions/chat/log-sessions.ts'
import { recordRefusals } from '../sessions/chat/record-refusals.ts'
import { SessionDirectory } from '../sessions/chat/session-directory.ts'
import { SessionFeed } from '../sessions/chat/session-feed.ts'
import { Toolbox } from '../sessions/chat/toolbox.ts'
import { WorkspaceTransfer } from '../sessions/files/workspace-transfer.ts'
import { SessionManager } from '../sessions/sandboxes/session-manager.ts'
import { DEFAULT_SESSIONS_OPTIONS, type SessionsOptions } from '../sessions/sandboxes/session-options.ts'
import { createSocketServer } from '../socket/create-socket-server.ts'
import { openCheckpointStore } from '../storage/checkpoints/checkpoint-files.ts'
import { claimDataDir } from '../storage/claim-data-dir.ts'
import { deploymentFile, readDeploymentId } from '../storage/deployment-file.ts'
import { lockDataDir } from '../storage/embedded/data-dir-lock.ts'
import { openEmbeddedStore } from '../storage/embedded/open-embedded-store.ts'
import { observedCheckpoints, observedStore } from '../storage/observed-store.ts'
import { openRedisStore } from '../storage/redis/open-redis-store.ts'
import { type Patience, redisAddress } from '../storage/redis/redis-client.ts'
import { openSocketAdapter, type SocketAdapter } from '../storage/redis/socket-adapter.ts'
import type { Store } from '../storage/store.ts'
import { openTrail, trailReader } from './app-audit.ts'
import { createGatewayApp, type GatewayApp } from './app-gateway.ts'
import { openReadiness, SaveWatch } from './app-health.ts'
import { prepareEngine, stopApp } from './app-lifecycle.ts'
import { watchFigures } from './app-metrics.ts'
import { openModels } from './app-models.ts'
import { type ChatServers, chatServers, senderAtSocket, serverDirectory } from './app-servers.ts'

export interface Core {
  engine: SandboxEngine
  store: Store
  sessions: SessionManager
  access: SessionAccess
  quotas: Quotas
  feed: SessionFeed
  progress: ProgressBoard<Progress['stage']>
  saves: SaveWatch
  /** Opens for business and has the image built meanwhile, if need be. */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface App {
  /** Where it listens, once started. */
  url(): string
  start(): Promise<void>
  /** Lets open requests and turns come to an end, saves the files, removes the sandboxes. `hurry` cuts short what may be. */
  stop(hurry?: AbortSignal): Promise<void>
  /** How many sessions' files `stop` has saved, and the sessions whose files it could not save, or has not saved yet. */
  ending(): { saved: number; unsaved: string[] }
}

const MB = 1024 * 1024
const DEFAULT_HISTORY_TOKENS = 100_000

export function openEngine(settings: Settings, logger: Logger): SandboxEngine {
  return createDockerEngine({ limits: sandboxLimits(settings), image: settings.SANDBOX_IMAGE, logger })
}

/** `deploymentId` is what an empty store gets. */
export async function openStore(
  settings: Settings,
  logger: Logger,
  patience?: Patience,
  deploymentId = readDeploymentId(deploymentFileOf(settings))
): Promise<Store> {
  if (settings.REDIS_URL)
    return openRedisStore({ url: settings.REDIS_URL, deployment: settings.DEPLOYMENT, deploymentId, patience, logger })
  return openEmbeddedStore({ dataDir: resolve(settings.DATA_DIR), deploymentId, logger })
}

function deploymentFileOf({ DATA_DIR, REDIS_URL, DEPLOYMENT }: Settings): string {
  return deploymentFile(resolve(DATA_DIR), REDIS_URL ? `${redisAddress(REDIS_URL)} ${DEPLOYMENT}` : 'embedded')
}

function sessionsOptions(settings: Settings): SessionsOptions {
  return {
    ...DEFAULT_SESSIONS_OPTIONS,
    maxSessions: settings.MAX_SESSIONS,
    maxSandboxesPerOwner: settings.MAX_SANDBOXES_PER_OWNER,
    warmPoolSize: settings.WARM_POOL_SIZE,
    idleMs: settings.SESSION_IDLE_SECONDS * 1000,
    janitorIntervalMs: settings.JANITOR_INTERVAL_SECONDS * 1000,
    pauseAfterMs: settings.PAUSE_AFTER_SECONDS * 1000,
    retentionMs: settings.RETENTION_DAYS * 86_400_000
  }
}

/** What tests, benchmarks and the whole app put in place of what the settings say. */
export interface CoreOverrides {
  sessions?: Partial<SessionsOptions>
  engine?: SandboxEngine
  instanceId?: string
  /** How long, and until when, to wait for a Redis that does not answer. */
  patience?: Patience
  /** Takes the data folder for the right one, whatever Redis says. */
  acceptDataDir?: boolean
  /** Counts what the core does, for metrics. */
  observer?: CoreObserver
}

/** The store and the folder with the sessions' files, which must belong together. */
async function openStorage(
  settings: Settings,
  logger: Logger,
  overrides: CoreOverrides,
  report: ReturnType<SaveWatch['before']>
) {
  const dataDir = resolve(settings.DATA_DIR)
  const file = deploymentFileOf(settings)
  const offered = readDeploymentId(file) ?? randomUUID()
  const store = observedStore(await openStore(settings, logger, overrides.patience, offered), report)
  const maxSessionBytes = settings.SANDBOX_WORKSPACE_MB * 4 * MB
  const files = openCheckpointStore({ dir: join(dataDir, 'checkpoints'), maxSessionBytes, logger })
  const checkpoints = observedCheckpoints(files, report)
  // The embedded store is in the folder itself.
  const isAccepted = overrides.acceptDataDir === true || !settings.REDIS_URL
  await claimDataDir({ dataDir, file, offered, store, checkpoints, isAccepted }).catch(async (error) => {
    await store.close()
    throw error
  })
  return { store, checkpoints }
}

export async function createCore(settings: Settings, logger: Logger, overrides: CoreOverrides = {}): Promise<Core> {
  const dataDir = resolve(settings.DATA_DIR)
  // Instances that share a Redis share the folder too; the embedded store serves one.
  const lock = settings.REDIS_URL ? undefined : lockDataDir(dataDir)
  const { observer, instanceId = randomUUID() } = overrides
  const saves = new SaveWatch()
  const report = saves.before(observer?.stored)
  const { store, checkpoints } = await openStorage(settings, logger, overrides, report)
  const engine = observed(overrides.engine ?? openEngine(settings, logger), observer?.engine ?? (() => {}))
  const feed = new SessionFeed((error) => logger.error({ err: error }, 'A listener of the feed failed.'))
  const access = new SessionAccess(store.keyValues, settings.MAX_OWNER_SESSIONS, {
    async checkOpen(sessionId) {
      if (await checkpoints.has(sessionId)) throw sessionLost()
      await quotas.checkOpen()
    },
    revoked: (sessionId) => feed.revoked(sessionId)
  })
  const stored = { access, events: store.events, checkpoints, store: store.sessions }
  const quotas: Quotas = new Quotas(stored, quotaLimits(settings))
  const sessions = new SessionManager(
    {
      instanceId,
      engine,
      store: store.sessions,
      events: store.events,
      checkpoints,
      ownerOf: (sessionId) => access.ownerOf(sessionId),
      logger,
      publish: feed.stored,
      emptied: async () => feed.emptied(),
      isAlone: lock !== undefined,
      forgotten: async (sessionId) => {
        await access.forget(sessionId)
        feed.gone(sessionId)
      }
    },
    { ...sessionsOptions(settings), ...overrides.sessions }
  )
  const progress = new ProgressBoard<Progress['stage']>('engine', 'Looking for the container engine')
  const stopping = new AbortController()
  return {
    engine,
    store,
    sessions,
    access,
    quotas,
    feed,
    progress,
    saves,
    async start() {
      // The lock says that every earlier owner of this folder is dead: nobody has to wait for its leases.
      if (lock) for (const gone of await store.sessions.instances()) await store.sessions.farewell(gone)
      void prepareEngine({ engine, progress, sessions }, logger, stopping.signal).then(() => sessions.pool.fill())
      await sessions.start()
    },
    async stop() {
      stopping.abort()
      await sessions.stop()
      await engine.close()
      await store.close()
      lock?.release()
    }
  }
}

/** `environment` is what child servers and `${env:…}` in the registry are given of. */
export async function createApp(
  settings: Settings,
  rootLogger: Logger,
  environment: Record<string, string | undefined> = {},
  { instanceId = randomUUID(), ...start }: Pick<CoreOverrides, 'instanceId' | 'patience' | 'acceptDataDir'> = {}
): Promise<App> {
  const logger = rootLogger.child({ instance: instanceId })
  const metrics = createMetrics()
  const refused = createRefusals(logger, metrics.core.refused)
  const core = await createCore(settings, logger, { ...start, instanceId, observer: metrics.core })
  const models = observedModels(openModels(settings, logger), metrics.core.modelStep)
  const { keyValues } = core.store
  const trail = openTrail(settings, metrics.observer)
  const shared = { keyValues, trail, models, dotenv: dotenvWithSecrets(), refused }
  const gateway = await createGatewayApp(settings, logger, { environment, optionalRegistry: true, ...shared })
  const servers = chatServers(gateway, logger)
  const guard = createDefinitionGuard(keyValues)
  const chat = createChat(settings, core, models, servers, guard, trail.audit, logger, refused)
  const { sessions, feed, access, progress } = core
  const directory = openDirectory(settings, core, chat, logger)
  const entrance = openEntrance(settings, keyValues, access, logger)
  const door = openMcpDoor(gateway, logger)
  const inbox = new ApprovalInbox(keyValues)
  const dataDir = resolve(settings.DATA_DIR)
  const readiness = openReadiness({ ...core, trail, dataDir, minFreeMb: settings.MIN_FREE_MB }, logger)
  const http = await createHttpServer({
    inbox,
    readiness,
    models,
    sessions: directory,
    files: new WorkspaceTransfer(sessions, (sessionId) => core.quotas.checkWork(sessionId)),
    maxUploadBytes: settings.MAX_UPLOAD_MB * MB,
    transcript: (sessionId) => chat.whole(sessionId),
    ...{ ...entrance, admin: new AdminAccess(settings, logger), senderOf: senderAtSocket(gateway) },
    metrics: metrics.text,
    refused,
    servers: serverDirectory(gateway, keyValues, servers.policy, guard),
    audit: trailReader(settings, trail, ownerOfCookies),
    mcp: limitedMcp(mcpLimit(settings.MCP_REQUESTS_PER_MINUTE), entrance, door.handle, refused),
    webRoot: join(packageRoot(), 'dist', 'web'),
    logger
  })
  const live = openLive(settings, logger)
  const sockets = createSocketServer({
    ...{ ...entrance, chat, access, models, feed, logger },
    httpServer: http.raw,
    refused,
    state: (sessionId) => directory.state(sessionId),
    progress: () => progress.current,
    onProgress: (listener) => progress.onSay(listener),
    adapter: live?.adapter,
    isDraining: () => http.drain.isDraining
  })
  watchFigures(metrics, { ...core, gateway, inbox, trail, sockets, readiness, dataDir, refused })
  logSessions(feed, logger)
  let url = ''
  return {
    url: () => url,
    async start() {
      url = await http.listen({ port: settings.PORT, host: settings.HOST })
      inbox.attend()
      gateway.watch()
      void models.catalog().catch((error) => logger.warn({ err: error }, 'Models could not be detected.'))
      await core.start()
    },
    ending: () => sessions.ending,
    stop: (hurry) =>
      stopApp({ http, inbox, chat, sockets, door, gateway, sessions, audit: trail.audit, live, core, logger }, hurry)
  }
}

function openLive({ REDIS_URL: url, DEPLOYMENT: deployment }: Settings, logger: Logger): SocketAdapter | undefined {
  return url ? openSocketAdapter({ url, deployment, logger }) : undefined
}

/** What both faces ask before anyone comes in. */
function openEntrance(settings: Settings, keyValues: Store['keyValues'], access: SessionAccess, logger: Logger) {
  return {
    instance: new InstanceAccess(settings.AUTH_TOKEN, logger, settings.WRONG_TOKENS_PER_MINUTE),
    owners: new OwnerAccess(keyValues, access),
    addressOf: clientAddresses(settings.TRUST_PROXY),
    ownerOf: ownerOfCookies,
    requestsPerMinute: settings.REQUESTS_PER_MINUTE,
    limits: {
      commandsPerMinute: settings.COMMANDS_PER_MINUTE,
      messagesPerMinute: settings.MESSAGES_PER_MINUTE,
      connectionsPerMinute: settings.CONNECTIONS_PER_MINUTE,
      maxConnections: settings.MAX_CONNECTIONS,
      maxPendingConnections: settings.MAX_PENDING_CONNECTIONS
    }
  }
}

function openMcpDoor(gateway: GatewayApp, logger: Logger) {
  const exposed = gateway.exposed && openExposedHttp(gateway.exposed, logger, ownerOfCookies)
  return openHttpDoor(gateway.gateway, gateway.version, logger, ownerOfCookies, exposed)
}

function openDirectory(settings: Settings, { sessions, store, feed, access }: Core, chat: Chat, logger: Logger) {
  const network = settings.SANDBOX_NETWORK
  const idleMs = settings.SESSION_IDLE_SECONDS * 1000
  const { events } = store
  return new SessionDirectory({ access, sessions, chat, store: store.sessions, events, feed, logger, idleMs, network })
}

function createChat(
  settings: Settings,
  { sessions, store, feed, access, quotas }: Core,
  models: Models,
  servers: ChatServers,
  guard: DefinitionGuard,
  audit: Audit,
  logger: Logger,
  refused: ReportRefusal
): Chat {
  const ownerOf = (sessionId: string) => access.ownerOf(sessionId)
  const chat = new Chat({
    sessions,
    events: store.events,
    checkQuota: (sessionId) => quotas.checkWork(sessionId),
    models,
    policy: servers.policy,
    guard,
    toolbox: new Toolbox({ sources: servers.sources, ownerOf, policy: servers.policy, audit, logger, refused }),
    options: {
      limits: { maxSteps: settings.MAX_STEPS, maxSessionTokens: settings.MAX_SESSION_TOKENS },
      maxHistoryTokens: settings.MAX_HISTORY_TOKENS ?? DEFAULT_HISTORY_TOKENS,
      maxOutputTokens: settings.MAX_OUTPUT_TOKENS,
      network: settings.SANDBOX_NETWORK,
      ownImage: settings.SANDBOX_IMAGE !== undefined
    },
    logger,
    async append(sessionId, events, epoch) {
      feed.stored(sessionId, await store.events.append(sessionId, events, epoch === undefined ? {} : { epoch }))
    },
    live: feed.live
  })
  recordRefusals({ feed, transcript: (sessionId) => chat.transcript(sessionId), ownerOf, audit, logger })
  return chat
}

/** Cookies here are proven already (`security.ts`). An MCP client has none: it is whoever may come in here at all. */
function ownerOfCookies(cookies: string | undefined): string {
  const cookie = readCookie(cookies, OWNER_COOKIE)
  return cookie ? ownerName(cookie) : LOCAL_OWNER
}
