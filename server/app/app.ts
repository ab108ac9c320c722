/** The composition root of `serve`: builds both faces on the core. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Audit } from '../audit/audit.ts'
import { LOCAL_OWNER } from '../calls/caller.ts'
import { StoredRuns } from '../code/stored-runs.ts'
import { dotenvWithSecrets } from '../config/load-settings.ts'
import type { Settings } from '../config/settings.ts'
import { userCredentials } from '../config/user-folders.ts'
import { openHttpDoor } from '../gateway/doors/http-door.ts'
import { openExposedHttp } from '../gateway/expose/http/exposed-http.ts'
import { createHttpServer } from '../http/create-http-server.ts'
import { limitedMcp, mcpLimit } from '../http/mcp-limit.ts'
import { createMetrics } from '../http/metrics.ts'
import type { ConversationFiles } from '../http/routes/attachment-routes.ts'
import { packageRoot } from '../lib/files/package-root.ts'
import type { Logger } from '../lib/logger.ts'
import { createRefusals, type ReportRefusal } from '../lib/refusals.ts'
import { Lazy } from '../lib/waiting/lazy.ts'
import { OWNER_COOKIE, readCookie } from '../lib/web/browser-proof.ts'
import { clientAddresses } from '../lib/web/client-address.ts'
import { observedModels } from '../models/observed-models.ts'
import type { Models } from '../models/port.ts'
import type { DefinitionGuard } from '../policy/definition-guard.ts'
import { AdminAccess } from '../sessions/access/admin-access.ts'
import { InstanceAccess } from '../sessions/access/instance-access.ts'
import { OwnerAccess } from '../sessions/access/owner-access.ts'
import { PersonInstructions } from '../sessions/access/person-instructions.ts'
import { ownerName, type SessionAccess } from '../sessions/access/session-access.ts'
import { readFile, removeUnsent, storeFile } from '../sessions/attachments/stored-file.ts'
import { Chat } from '../sessions/chat/chat.ts'
import { sessionBranching } from '../sessions/directory/branch-session.ts'
import { conversationImport } from '../sessions/directory/import-conversation.ts'
import { SessionDirectory } from '../sessions/directory/session-directory.ts'
import { SessionSearch } from '../sessions/directory/session-search.ts'
import { nameSessions } from '../sessions/directory/session-titles.ts'
import { learnFromChats } from '../sessions/feed/learn-from-chats.ts'
import { logSessions } from '../sessions/feed/log-sessions.ts'
import { recordRefusals } from '../sessions/feed/record-refusals.ts'
import { RecordedCalls } from '../sessions/feed/recorded-calls.ts'
import { WorkspaceHistory } from '../sessions/files/workspace-history.ts'
import { WorkspaceTransfer } from '../sessions/files/workspace-transfer.ts'
import type { ProgramOptions } from '../sessions/turns/programs/program-options.ts'
import { Toolbox } from '../sessions/turns/toolbox.ts'
import { createSocketServer } from '../socket/create-socket-server.ts'
import { openSocketAdapter, type SocketAdapter } from '../storage/redis/socket-adapter.ts'
import type { Store } from '../storage/store.ts'
import { forgetStoredSession } from '../tools/stored-usage.ts'
import { auditReader, openSharedAudit } from './app-audit.ts'
import { createGatewayApp, type GatewayApp } from './app-gateway.ts'
import { openReadiness } from './app-health.ts'
import { stopApp } from './app-lifecycle.ts'
import { countInterrupted, watchFigures } from './app-metrics.ts'
import { openModels } from './app-models.ts'
import {
  type ChatServers,
  chatServers,
  hasMembers,
  importPlace,
  openSenderCheck,
  serverDirectory
} from './app-servers.ts'
import { type Core, type CoreOverrides, createCore } from './core.ts'
import { dataPaths } from './data-paths.ts'
import { openRealms } from './gateway/code-realms.ts'
import { ProviderKeys } from './provider-keys.ts'
import { openSharedKeys } from './shared-keys.ts'
import { sharedParts } from './shared-parts.ts'

export interface App {
  /** The address, once started. */
  url(): string
  start(): Promise<void>
  /** Lets open requests and turns end, saves the files, removes the sandboxes. `hurry` shortens the waits. */
  stop(hurry?: AbortSignal): Promise<void>
  /** Number of sessions that `stop` has saved, and the sessions that are not saved (yet). */
  ending(): { saved: number; unsaved: string[]; left: number }
}

const MB = 1024 * 1024
const DEFAULT_HISTORY_TOKENS = 100_000

/** `environment` is the source for child servers and for `${env:…}` in the registry. */
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
  const { keyValues } = core.store
  const { models, providers } = openKeyedModels(settings, logger, environment, metrics.core.modelStep, keyValues)
  const shared = sharedParts(core, await openSharedAudit(settings, metrics.observer, core, logger))
  const { auditLog, guard, inbox } = shared
  const inside = { hidesReasons: hasMembers(settings), reserveRealm: core.sessions.reserveRealm }
  const common = { shared, models, dotenv: dotenvWithSecrets(), readsDotenv: true, refused, ...inside }
  const gateway = await createGatewayApp(settings, logger, { environment, optionalRegistry: true, ...common })
  const servers = chatServers(gateway, logger)
  const chat = createChat(settings, core, { ...common, servers, guard, audit: auditLog.audit, logger, environment })
  const { sessions, feed, access, progress } = core
  const directory = openDirectory(settings, core, chat, models, logger)
  const entrance = openEntrance(settings, keyValues, access, logger)
  const senders = openSenderCheck(gateway, entrance)
  const door = openMcpDoor(gateway, logger)
  const dataDir = dataPaths(settings.DATA_DIR).root
  const readiness = openReadiness({ ...core, auditLog, dataDir, minFreeMb: settings.MIN_FREE_MB }, logger)
  const http = await createHttpServer({
    ...{ inbox, readiness },
    runs: new StoredRuns(shared),
    ...{ models, providers },
    maxHistoryTokens: settings.MAX_HISTORY_TOKENS ?? DEFAULT_HISTORY_TOKENS,
    sessions: directory,
    ...openFiles(settings, core),
    ...openSearch(core, directory, chat, models),
    transcript: (sessionId) => chat.fullTranscript(sessionId),
    ...{ ...entrance, senders },
    metrics: metrics.text,
    refused,
    servers: serverDirectory(gateway, keyValues, servers.policy, guard, importPlace(settings, environment)),
    audit: auditReader(settings, auditLog, ownerOfCookies, new RecordedCalls((id) => chat.fullTranscript(id))),
    mcp: limitedMcp(mcpLimit(settings.MCP_REQUESTS_PER_MINUTE), entrance, door.handle, refused),
    webRoot: join(packageRoot(), 'dist', 'web'),
    logger
  })
  const live = openLive(settings, logger)
  const sockets = createSocketServer({
    ...{ ...entrance, senders, chat, access, models, feed, logger, directory, inbox, events: core.store.events },
    httpServer: http.raw,
    ...{ refused, progress: () => progress.current },
    onProgress: (listener) => progress.onSay(listener),
    adapter: live?.adapter,
    isDraining: () => http.drain.isDraining
  })
  watchFigures(metrics, { ...core, gateway, inbox, auditLog, sockets, readiness, dataDir, refused })
  logSessions(feed, logger, (sessionId, callId) => void countInterrupted(metrics, chat, sessionId, callId))
  let url = ''
  return {
    url: () => url,
    async start() {
      url = await http.listen({ port: settings.PORT, host: settings.HOST })
      inbox.attend()
      gateway.watch()
      await providers.follow()
      await core.start()
      auditLog.share({ ...core.store, instanceId }, logger)
    },
    ending: () => sessions.ending,
    stop: (hurry) =>
      stopApp({ http, providers, inbox, chat, directory, sockets, door, gateway, auditLog, live, core, logger }, hurry)
  }
}

/** The files of the workspace and those of the conversation. */
function openFiles({ SANDBOX_WORKSPACE_MB, MAX_UPLOAD_MB }: Settings, { sessions, quotas, contents, store }: Core) {
  const checkQuota = (sessionId: string) => quotas.checkWork(sessionId)
  const files = new WorkspaceTransfer(sessions, { checkQuota, maxArchiveBytes: SANDBOX_WORKSPACE_MB * 4 * MB })
  const attachments: ConversationFiles = {
    async add(sessionId, bytes) {
      await checkQuota(sessionId)
      return storeFile(contents, sessionId, bytes)
    },
    read: (sessionId, id) => readFile(contents, sessionId, id),
    removeUnsent: (sessionId, id) => removeUnsent(contents, store.events, sessionId, id)
  }
  return { files, history: new WorkspaceHistory(sessions), attachments, maxUploadBytes: MAX_UPLOAD_MB * MB }
}

function openLive({ REDIS_URL: url, DEPLOYMENT: deployment }: Settings, logger: Logger): SocketAdapter | undefined {
  return url ? openSocketAdapter({ url, deployment, logger }) : undefined
}

/** The access checks of both faces. */
function openEntrance(settings: Settings, keyValues: Store['keyValues'], access: SessionAccess, logger: Logger) {
  return {
    instance: new InstanceAccess(settings.AUTH_TOKEN, logger, settings.WRONG_TOKENS_PER_MINUTE),
    admin: new AdminAccess(settings, logger),
    owners: new OwnerAccess(keyValues, access),
    instructions: new PersonInstructions(keyValues),
    addressOf: clientAddresses(settings.TRUST_PROXY),
    allowedOrigins: settings.ALLOWED_ORIGINS ?? [],
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

function openDirectory(settings: Settings, core: Core, chat: Chat, models: Models, logger: Logger): SessionDirectory {
  const { sessions, store, feed, appends, access, quotas } = core
  const { events } = store
  if (settings.GENERATED_TITLES === 'true') {
    const checkQuota = (sessionId: string) => quotas.checkWork(sessionId)
    const transcript = (sessionId: string) => chat.transcript(sessionId)
    const log = { events, ...appends.hooks }
    nameSessions({ access, models, transcript, checkQuota, log, feed, logger })
  }
  const network = settings.SANDBOX_NETWORK
  const idleMs = settings.SESSION_IDLE_SECONDS * 1000
  const stores = { store: store.sessions, keyValues: store.keyValues, events }
  const directory = new SessionDirectory({ access, sessions, chat, ...stores, feed, logger, idleMs, network })
  directory.deleted.start()
  return directory
}

function openSearch(core: Core, directory: SessionDirectory, chat: Chat, models: Models) {
  const { access, store, quotas, sessions, checkpoints } = core
  const { events } = store
  const checkQuota = (sessionId: string) => quotas.checkWork(sessionId)
  return {
    search: new SessionSearch({ access, events, summary: (sessionId) => directory.summary(sessionId) }),
    importConversation: conversationImport({ directory, chat, models, events, checkQuota }),
    branchSession: sessionBranching({
      ...{ directory, sessions, checkpoints, events, checkQuota },
      transcript: (sessionId) => chat.transcript(sessionId)
    })
  }
}

interface ChatParts {
  models: Models
  servers: ChatServers
  guard: DefinitionGuard
  environment: Record<string, string | undefined>
  audit: Audit
  logger: Logger
  refused: ReportRefusal
}

function createChat(
  settings: Settings,
  { sessions, store, contents, feed, appends, access, quotas, format }: Core,
  { models, servers, guard, audit, logger, refused, environment }: ChatParts
): Chat {
  const ownerOf = (sessionId: string) => access.ownerOf(sessionId)
  const instructions = new PersonInstructions(store.keyValues)
  const programs = openPrograms(settings, logger, environment, { sessions, access })
  const chat = new Chat({
    sessions,
    events: store.events,
    contents,
    checkQuota: (sessionId) => quotas.checkWork(sessionId),
    mayWrite: (version) => format.mayWrite(version),
    instructionsOf: async (sessionId) => instructions.of(await ownerOf(sessionId)),
    models,
    policy: servers.policy,
    guard,
    toolbox: new Toolbox({ ...servers, ownerOf, guard, audit, logger, refused, hasPrograms: programs !== undefined }),
    programs,
    options: {
      limits: { maxSteps: settings.MAX_STEPS, maxSessionTokens: settings.MAX_SESSION_TOKENS },
      maxHistoryTokens: settings.MAX_HISTORY_TOKENS ?? DEFAULT_HISTORY_TOKENS,
      maxOutputTokens: settings.MAX_OUTPUT_TOKENS,
      maxTools: settings.MAX_CHAT_TOOLS,
      effort: settings.REASONING_EFFORT,
      network: settings.SANDBOX_NETWORK,
      mode: settings.APPROVAL_MODE,
      ownImage: settings.SANDBOX_IMAGE !== undefined
    },
    logger,
    ...appends.hooks,
    live: feed.live
  })
  // The driver of its turn has not heard of them either.
  feed.subscribe({ late: (sessionId) => chat.nudge(sessionId) })
  learnFromChats({
    ...{ feed, ownerOf, logger },
    transcript: (sessionId) => chat.transcript(sessionId),
    learn: servers.learn,
    forget: async (sessionId) => servers.forgetSession(sessionId) ?? forgetStoredSession(store.keyValues, sessionId)
  })
  recordRefusals({ feed, transcript: (sessionId) => chat.transcript(sessionId), ownerOf, audit, logger })
  return chat
}

/** Each program has a container of its own. A person who decides at once finds it still there. */
function openPrograms(
  settings: Settings,
  logger: Logger,
  environment: Record<string, string | undefined>,
  { sessions, access }: Pick<Core, 'sessions' | 'access'>
): ProgramOptions | undefined {
  if (settings.CHAT_CODE !== 'true') return undefined
  const realms = new Lazy(() => openRealms(settings, logger, environment, sessions.reserveRealm))
  return {
    async openRealm(sessionId, request) {
      const owner = await access.ownerOf(sessionId)
      return (await realms.get()).open({ ...request, owner })
    },
    lingerMs: 10_000,
    pollMs: 500,
    close: async () => (await realms.opened)?.close()
  }
}

/** Cookies are already proven here (`security.ts`). An MCP client has no cookie; having access is enough. */
function ownerOfCookies(cookies: string | undefined): string {
  const cookie = readCookie(cookies, OWNER_COOKIE)
  return cookie ? ownerName(cookie) : LOCAL_OWNER
}

/** The models, and the keys for them that an administrator can enter. */
function openKeyedModels(
  settings: Settings,
  logger: Logger,
  environment: Record<string, string | undefined>,
  report: Parameters<typeof observedModels>[1],
  keyValues: Store['keyValues']
): { models: Models; providers: ProviderKeys } {
  const keyed = openModels(settings, logger)
  const models = observedModels(keyed, report)
  const file = settings.CREDENTIALS_FILE ?? userCredentials(environment)
  const { REDIS_URL, ADMIN_TOKEN } = settings
  const shared = REDIS_URL && ADMIN_TOKEN ? openSharedKeys(keyValues, ADMIN_TOKEN) : undefined
  return { models, providers: new ProviderKeys(settings, { file, shared, keyed, models, logger }) }
}
