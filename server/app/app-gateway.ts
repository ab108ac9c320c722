/**
 * The second composition root: the gateway alone. Beside `app.ts` because it must start in the time of a bare MCP server: what a
 * call needs (store, router, MCP client) is loaded with the first call, and nothing of the workspace at all.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Tracing } from '../calls/tracing/tracing.ts'
import { type Grants, openGrants } from '../catalog/grants.ts'
import { describeProblem, loadRegistry, type Registry } from '../catalog/registry.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import { RegistryWatch } from '../catalog/watch-registry.ts'
import { sandboxLimits } from '../config/sandbox-limits.ts'
import type { Settings } from '../config/settings.ts'
import { enginePlaces } from '../connections/local/engine-places.ts'
import { Gateway } from '../gateway/execute/gateway.ts'
import type { Exposed, ExposedOptions } from '../gateway/expose/exposed.ts'
import type { GatewayOptions, GatewayServices } from '../gateway/gateway-services.ts'
import { AppError } from '../lib/errors.ts'
import { makeFolder } from '../lib/files/make-folder.ts'
import { packageVersion } from '../lib/files/package-version.ts'
import type { Logger } from '../lib/logger.ts'
import type { Models } from '../models/port.ts'
import type { ApprovalPolicy, PolicyRule } from '../policy/approval-policy.ts'
import type { Router } from '../routing/port.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import type { Enrichment, EnrichmentOptions } from '../tools/enrichment/enrichment.ts'
import type { WriteText } from '../tools/enrichment/tool-examples.ts'
import type { ToolIndexOptions } from '../tools/tool-index.ts'
import type { Trail } from './app-audit.ts'

const FIRST_GRANT =
  'This data folder has no record of this mcp.json, so this is taken as the first start: these servers get the secrets that their entries name.'

export interface GatewayApp {
  gateway: Gateway
  version: string
  /** Where the registry is. */
  file: string
  registry(): Registry
  /** Why the file as it stands now can't be used. */
  registryProblem(): string | undefined
  /** Applies what stands in the file now. */
  reload(): Promise<void>
  credentialsFile: string | undefined
  /** Folder of what servers write to stderr. */
  logDir: string
  /** Which entries may have their secrets. */
  grants: Grants
  /** What the tools stand on; loaded with the first call. */
  core(): Promise<GatewayServices>
  /** The same, if it has been loaded; loads nothing. */
  loaded(): GatewayServices | undefined
  /** With `GATEWAY_EXPOSE`: what clients see in place of the four tools. */
  exposed?: () => Promise<Exposed>
  /** Applies changes of the registry as they come. */
  watch(): void
  stop(): Promise<void>
}

export interface GatewayAppOptions extends Pick<GatewayOptions, 'refused'> {
  environment: Record<string, string | undefined>
  /** A registry that is not there is an empty one. */
  optionalRegistry: boolean
  /** Where a store is open already. */
  keyValues?: KeyValueStore
  /** Where a trail is open already; whoever opened it closes it. */
  trail?: Trail
  /** Where they are open already. */
  models?: Models
  /** The `.env` that settings were read from. */
  dotenv?: string | undefined
}

const MAX_STOP_MS = 15_000

interface Loaded {
  core: GatewayServices
  update(registry: Registry): void
  close(): Promise<void>
}

/** Throws when the registry as a whole, or the credentials file, can't be used. */
export async function createGatewayApp(
  settings: Settings,
  logger: Logger,
  options: GatewayAppOptions
): Promise<GatewayApp> {
  const file = resolve(settings.MCP_CONFIG)
  let registry = await loadRegistry(file, { optional: options.optionalRegistry })
  if (settings.CREDENTIALS_FILE !== undefined) {
    const { openCredentials } = await import('../catalog/credentials.ts')
    openCredentials({ file: settings.CREDENTIALS_FILE, environment: {} }).source()
  }
  for (const problem of registry.problems) logger.warn(describeProblem(file, problem))
  const grants = openGrants(settings.DATA_DIR, settings.MCP_CONFIG)
  let loading: Promise<Loaded> | undefined
  const load = () => {
    loading ??= loadCore(settings, logger, { ...options, grants }, registry).catch((error) => {
      loading = undefined
      throw error
    })
    return loading
  }
  const watch = new RegistryWatch(registry, {
    file,
    logger,
    async onChange(next, { removed, changed, metadataChanged }) {
      registry = next
      const loaded = await loading
      loaded?.update(next)
      const off = metadataChanged.filter(({ enabled }) => !enabled)
      for (const { name } of [...removed, ...changed, ...off]) loaded?.core.connections.retire(name)
    }
  })
  const version = packageVersion()
  let loaded: GatewayServices | undefined
  const registryProblem = () => {
    if (watch.problem !== undefined)
      return `${watch.problem} The servers are those of the last file that could be used.`
    return registry.servers.size === 0 && !existsSync(file) ? `${file} is missing, so there are no servers.` : undefined
  }
  const core = async () => {
    loaded ??= { ...(await load()).core, registryProblem }
    return loaded
  }
  const expose = readExpose(settings.GATEWAY_EXPOSE, file, registry)
  const face = { version, logger, refused: options.refused }
  return {
    gateway: new Gateway({ ...face, core }),
    version,
    file,
    registry: () => registry,
    registryProblem: () => watch.problem,
    reload: () => watch.reload(),
    core,
    loaded: () => loaded,
    logDir: serverLogs(settings),
    grants,
    credentialsFile: settings.CREDENTIALS_FILE,
    ...(expose ? { exposed: exposedOnce({ only: expose.only, ...face }, core) } : {}),
    watch: () => watch.start(),
    async stop() {
      watch.close()
      // Much of what ends here waits with timers that keep no process alive: without this one, the wait would end with the process.
      const awake = setTimeout(() => {}, MAX_STOP_MS)
      try {
        await (await loading?.catch(() => undefined))?.close()
      } finally {
        clearTimeout(awake)
      }
    }
  }
}

async function loadCore(
  settings: Settings,
  logger: Logger,
  options: GatewayAppOptions & { grants: Grants },
  registry: Registry
): Promise<Loaded> {
  const [{ Connections }, { openCredentials }, { createRouter }, { createPolicy }, { openApprovals }, store] =
    await Promise.all([
      import('../connections/connections.ts'),
      import('../catalog/credentials.ts'),
      import('../routing/router.ts'),
      import('../policy/approval-policy.ts'),
      import('../gateway/asking/open-approvals.ts'),
      options.keyValues ? { keyValues: options.keyValues, close: async () => {} } : openKeyValues(settings, logger)
    ])
  const trail = options.trail ?? (await import('./app-audit.ts')).openTrail(settings)
  const credentials = trail.trackSecrets(
    openCredentials({ file: settings.CREDENTIALS_FILE, environment: options.environment })
  )
  trail.registerSecrets(registry, credentials)
  const tracing = await openTracer(settings)
  const router = createRouter()
  let ruled: ApprovalPolicy = createPolicy(rulesOf(registry.servers.values()))
  const approvals = openApprovals(store.keyValues, logger, {
    waitMs: settings.APPROVAL_WAIT_SECONDS * 1000,
    asksAboutChange: (server, tool) => settings.CHANGED_TOOLS === 'ask' && ruled(server, tool) !== 'allow'
  })
  const writeText = modelWriter(settings, logger, options.models)
  const means = { keyValues: store.keyValues, router, logger, write: writeText }
  const { index, enrichment } = await openIndex(settings, means, approvals.definitions.look)
  const first = await options.grants.begin(registry.servers.values())
  if (first.length > 0) logger.warn({ servers: first }, FIRST_GRANT)
  const connections = new Connections({
    ...{ index, credentials, grants: options.grants },
    environment: options.environment,
    openContainers: () => openContainers(settings, logger),
    logDir: serverLogs(settings),
    ...ourPlaces(settings, options),
    version: packageVersion(),
    ...{ observer: trail.observer, tracing },
    logger
  })
  await index.load(registry)
  await enrichment?.restore()
  const { openStoredUsage } = await import('../tools/stored-usage.ts')
  const usage = await openStoredUsage(store.keyValues, router, logger)
  // Outside clients have a human of their own in front of them: without a rule, a call is allowed.
  const policyOf = (next: Registry) =>
    createPolicy([{ glob: '*', verdict: 'allow' }, ...rulesOf(next.servers.values())])
  let policy: ApprovalPolicy = policyOf(registry)
  return {
    core: {
      ...{ index, connections, router, approvals, tracing, enrichment, writeText },
      policy: (server, tool) => policy(server, tool),
      audit: trail.audit,
      learn: usage.learn,
      forgetUsage: usage.forget,
      grants: options.grants
    },
    update(next) {
      ruled = createPolicy(rulesOf(next.servers.values()))
      policy = policyOf(next)
      trail.registerSecrets(next, credentials)
      index.update(next)
    },
    async close() {
      await Promise.all([connections.close(), tracing?.close(), enrichment?.close()])
      if (!options.trail) await trail.audit.close()
      await usage.flush()
      await store.close()
    }
  }
}

async function openTracer({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Settings): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined
  const { openTracing } = await import('../calls/tracing/otel-tracing.ts')
  return openTracing({ endpoint, version: packageVersion() })
}

interface IndexMeans extends Omit<EnrichmentOptions, 'index'> {
  router: Router
}

/** The tools, and what a model adds to their routing. */
async function openIndex(settings: Settings, means: IndexMeans, onSeen: NonNullable<ToolIndexOptions['onSeen']>) {
  const [{ ToolIndex }, { StoredTools }] = await Promise.all([
    import('../tools/tool-index.ts'),
    import('../catalog/stored-tools.ts')
  ])
  let enrichment: Enrichment | undefined
  const { keyValues, router, logger } = means
  const index = new ToolIndex({
    ...{ stored: new StoredTools(keyValues), router, logger },
    onSeen(server, tools) {
      onSeen(server, tools)
      enrichment?.seen()
    },
    examplesOf: (hash) => enrichment?.examplesOf(hash)
  })
  enrichment = await openEnrichment(settings, { ...means, index })
  return { index, enrichment }
}

/** Only where the settings ask for it: it sends descriptions of tools, and requests, to a provider. */
async function openEnrichment(settings: Settings, { write, ...means }: EnrichmentOptions) {
  const { EMBEDDING_MODEL: model, ROUTING_EXAMPLES: examples } = settings
  if (model === undefined && examples === 'false') return undefined
  if (examples === 'true' && !write) {
    means.logger.warn('ROUTING_EXAMPLES has no effect: no model provider is configured.')
  }
  const [{ Enrichment }, { createEmbedder }, { modelAccess }] = await Promise.all([
    import('../tools/enrichment/enrichment.ts'),
    import('../models/embedder.ts'),
    import('../config/model-access.ts')
  ])
  const embedder = model === undefined ? undefined : createEmbedder(model, modelAccess(settings))
  return new Enrichment({ ...means, embedder, ...(examples === 'true' ? { write } : {}) })
}

/** What no child may see. */
function ourPlaces(settings: Settings, { dotenv, environment }: GatewayAppOptions) {
  const { DATA_DIR, MCP_CONFIG, CREDENTIALS_FILE, AUTH_TOKEN } = settings
  const dataDir = resolve(DATA_DIR)
  const loginDir = join(dataDir, 'logins')
  // What is not there can't be covered.
  makeFolder(loginDir)
  const files = [MCP_CONFIG, CREDENTIALS_FILE, dotenv].filter((file) => file !== undefined)
  // On their own machine, people have servers that use the engine.
  const engines = AUTH_TOKEN === undefined ? [] : enginePlaces(environment)
  const isHosted = AUTH_TOKEN !== undefined
  return { loginDir, isHosted, places: { dataDir, files: files.map((file) => resolve(file)), engines } }
}

/** The rules of the registry alone: what none of them speaks of is `ask` there. */
export function rulesOf(servers: Iterable<ServerEntry>): PolicyRule[] {
  return [...servers].flatMap(({ name, approval }) =>
    Object.entries(approval).map(([glob, verdict]) => ({ server: name, glob, verdict }))
  )
}

function serverLogs(settings: Settings): string {
  return join(resolve(settings.DATA_DIR), 'server-logs')
}

/** With the first server that wants a sandbox: the engine's client is large, and most have no engine. */
async function openContainers(settings: Settings, logger: Logger) {
  const { createChildContainers } = await import('../sandbox/docker/servers/child-containers.ts')
  return createChildContainers({ limits: sandboxLimits(settings), image: settings.SANDBOX_IMAGE, logger })
}

/** Texts by a model that the user has a key for; loaded with the first of them. */
function modelWriter(settings: Settings, logger: Logger, open: Models | undefined): WriteText | undefined {
  const { ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENAI_API_KEY, OPENAI_COMPATIBLE_BASE_URL, LLM_PROVIDER } = settings
  const isConfigured = ANTHROPIC_API_KEY ?? GEMINI_API_KEY ?? OPENAI_API_KEY ?? OPENAI_COMPATIBLE_BASE_URL
  if (LLM_PROVIDER === 'demo' || isConfigured === undefined) return undefined
  let models = open
  return async (wish, signal) => {
    const { openModels, writeText } = await import('./app-models.ts')
    models ??= openModels(settings, logger)
    return writeText(models, wish, signal)
  }
}

async function openKeyValues(settings: Settings, logger: Logger) {
  if (settings.REDIS_URL) {
    const { openRedisStore } = await import('../storage/redis/open-redis-store.ts')
    return openRedisStore({ url: settings.REDIS_URL, deployment: settings.DEPLOYMENT, logger })
  }
  const { openEmbeddedStore } = await import('../storage/embedded/open-embedded-store.ts')
  return openEmbeddedStore({ dataDir: resolve(settings.DATA_DIR), logger })
}

/** `only` undefined: all servers. */
function readExpose(wish: string | undefined, file: string, { servers }: Registry): { only?: string } | undefined {
  if (wish === undefined) return undefined
  if (wish === 'all') return {}
  if (servers.get(wish)?.enabled) return { only: wish }
  const problem = servers.has(wish) ? `"${wish}", which is switched off` : `"${wish.slice(0, 100)}", which is not there`
  const message = `GATEWAY_EXPOSE (--expose) must be "all" or a server in ${file}; it is ${problem}.`
  throw new AppError('invalid', 'invalid_setting', message)
}

function exposedOnce(options: Omit<ExposedOptions, 'core'>, core: () => Promise<GatewayServices>) {
  let opening: Promise<Exposed> | undefined
  const open = async () => {
    const { Exposed } = await import('../gateway/expose/exposed.ts')
    return new Exposed({ ...options, core: await core() })
  }
  return () => {
    opening ??= open().catch((error) => {
      opening = undefined
      throw error
    })
    return opening
  }
}
