/** Loads what the gateway needs for a call: connections, router, tool index and approvals. `app-gateway.ts` imports it with the first call. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Tracing } from '../calls/tracing/tracing.ts'
import { openCredentials } from '../catalog/credentials.ts'
import type { Grants } from '../catalog/grants.ts'
import type { Registry } from '../catalog/registry.ts'
import { StoredTools } from '../catalog/stored-tools.ts'
import type { CodeRuns } from '../code/code-runs.ts'
import type { ReserveRealm } from '../code/realms/realm-queue.ts'
import { holdDotenv } from '../config/hold-dotenv.ts'
import { OUR_SECRETS, type Settings } from '../config/settings.ts'
import { Connections } from '../connections/connections.ts'
import { openApprovals } from '../gateway/asking/open-approvals.ts'
import type { GatewayServices } from '../gateway/gateway-services.ts'
import { messageOf } from '../lib/errors.ts'
import { packageVersion } from '../lib/files/package-version.ts'
import type { Logger } from '../lib/logger.ts'
import type { Embedder } from '../models/embedder.ts'
import type { Models } from '../models/port.ts'
import { type ApprovalPolicy, createPolicy, rulesOf } from '../policy/approval-policy.ts'
import type { Router } from '../routing/port.ts'
import { createRouter } from '../routing/router.ts'
import type { Enrichment, EnrichmentOptions } from '../tools/enrichment/enrichment.ts'
import type { WriteText } from '../tools/enrichment/tool-examples.ts'
import { openStoredUsage } from '../tools/stored-usage.ts'
import { ToolIndex, type ToolIndexOptions } from '../tools/tool-index.ts'
import { dataPaths } from './data-paths.ts'
import { openContainers, openRealms } from './gateway/code-realms.ts'
import { openLogins } from './open-logins.ts'
import { ourPlaces, type PlacesOptions } from './our-places.ts'
import type { SharedParts } from './shared-parts.ts'

const FIRST_GRANT =
  'This data folder has no record of this mcp.json, so this is taken as the first start: these servers get the secrets that their entries name.'

const FOLLOW_MS = 30_000

export interface LoadOptions extends PlacesOptions {
  shared: SharedParts
  grants: Grants
  /** Set if they are already open. */
  models?: Models | undefined
  /** Callers are not told why a server does not start. */
  hidesReasons?: boolean
  /** Gives programs places among the sandboxes of sessions. Without it, this process has places of its own. */
  reserveRealm?: ReserveRealm
}

export interface LoadedGateway {
  core: GatewayServices
  update(registry: Registry): void
  close(): Promise<void>
}

export async function loadGateway(
  settings: Settings,
  logger: Logger,
  options: LoadOptions,
  registry: Registry
): Promise<LoadedGateway> {
  const { environment, grants } = options
  const { keyValues, auditLog } = options.shared
  const credentials = auditLog.trackSecrets(
    openCredentials({ file: settings.CREDENTIALS_FILE, environment, ours: OUR_SECRETS })
  )
  auditLog.registerSecrets(registry, credentials)
  const tracing = await openTracer(settings)
  const router = createRouter()
  let ruled: ApprovalPolicy = createPolicy(rulesOf(registry.servers.values()))
  const approvals = openApprovals(options.shared, logger, {
    waitMs: settings.APPROVAL_WAIT_SECONDS * 1000,
    asksAboutChange: (server, tool) => settings.CHANGED_TOOLS === 'ask' && ruled(server, tool) !== 'allow'
  })
  const writeText = modelWriter(settings, logger, options.models)
  const means = { keyValues, router, logger, write: writeText }
  const { index, enrichment } = await openIndex(settings, means, approvals.definitions.look)
  await beginGrants(grants, registry, logger)
  const sharedLogins = await openLogins(settings, options.shared, logger)
  const releaseDotenv = options.readsDotenv ? holdDotenv() : () => {}
  const connections = new Connections({
    ...{ index, credentials, grants, environment },
    openContainers: () => openContainers(settings, logger, environment),
    logDir: dataPaths(settings.DATA_DIR).serverLogs,
    logins: sharedLogins ?? dataPaths(settings.DATA_DIR).logins,
    isHosted: settings.AUTH_TOKEN !== undefined,
    places: ourPlaces(settings, { ...options, storeDir: options.shared.storeDir }),
    hidesReasons: options.hidesReasons,
    version: packageVersion(),
    ...{ observer: auditLog.observer, tracing },
    logger
  })
  await index.load(registry)
  await enrichment?.restore()
  const usage = await openStoredUsage(keyValues, router, logger)
  const isShared = settings.REDIS_URL !== undefined || options.shared.storeDir !== undefined
  const others = isShared ? followOthers([() => index.reload(), usage.refresh], logger) : undefined
  // Outside clients have their own approval, so without a rule a call is allowed.
  let policy: ApprovalPolicy = policyOf(registry)
  let { problems } = registry
  const code = settings.GATEWAY_CODE === 'true' ? await openCode(settings, logger, options) : undefined
  const core: GatewayServices = {
    ...{ index, connections, router, approvals, tracing, enrichment, writeText, grants },
    policy: (server, tool) => policy(server, tool),
    audit: auditLog.audit,
    leftOut: (server) =>
      options.hidesReasons ? undefined : problems.find((each) => each.server === server && each.fatal)?.reason,
    ...{ learn: usage.learn, forgetUsage: usage.forget, forgetSession: usage.forgetSession },
    ...(code ? { code: { runs: code, isAllowedByRule: (server, tool) => ruled(server, tool) === 'allow' } } : {})
  }
  if (code) await followRuns(code, core)
  return {
    core,
    update(next) {
      ruled = createPolicy(rulesOf(next.servers.values()))
      policy = policyOf(next)
      problems = next.problems
      auditLog.registerSecrets(next, credentials)
      index.update(next)
    },
    async close() {
      await code?.close()
      await Promise.all([connections.close(), tracing?.close(), enrichment?.close()])
      for (const part of [sharedLogins, others, { close: releaseDotenv }]) part?.close()
      await usage.flush()
    }
  }
}

function policyOf({ servers }: Registry): ApprovalPolicy {
  return createPolicy([{ glob: '*', rule: 'allow' }, ...rulesOf(servers.values())])
}

async function beginGrants(grants: Grants, registry: Registry, logger: Logger): Promise<void> {
  const first = await grants.begin(registry.servers.values())
  if (first.length > 0) logger.warn({ servers: first }, FIRST_GRANT)
}

/** Other instances list tools and learn too. */
function followOthers(parts: (() => Promise<void>)[], logger: Logger): { close(): void } {
  const look = async () => {
    for (const part of parts) await part()
  }
  const report = (error: unknown) => logger.debug(`What other instances know could not be read: ${messageOf(error)}`)
  const timer = setInterval(() => void look().catch(report), FOLLOW_MS).unref()
  return { close: () => clearInterval(timer) }
}

async function openTracer({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Settings): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined
  const { openTracing } = await import('../calls/tracing/otel-tracing.ts')
  return openTracing({ endpoint, version: packageVersion() })
}

interface IndexMeans extends Omit<EnrichmentOptions, 'index'> {
  router: Router
}

/** The tool index, and what a model adds to routing. */
async function openIndex(settings: Settings, means: IndexMeans, onSeen: NonNullable<ToolIndexOptions['onSeen']>) {
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

/** Only if a model is installed or configured: a provider receives tool descriptions and requests. */
async function openEnrichment(settings: Settings, { write, ...means }: EnrichmentOptions) {
  const { ROUTING_EXAMPLES: examples } = settings
  const embedder = await openEmbedder(settings, means.logger)
  if (embedder === undefined && examples === 'false') return undefined
  if (examples === 'true' && !write) {
    means.logger.warn('ROUTING_EXAMPLES has no effect: no model provider is configured.')
  }
  const { Enrichment } = await import('../tools/enrichment/enrichment.ts')
  return new Enrichment({ ...means, embedder, ...(examples === 'true' ? { write } : {}) })
}

/** The provider that is configured, otherwise the model on this machine if it is installed. */
async function openEmbedder(settings: Settings, logger: Logger): Promise<Embedder | undefined> {
  const { EMBEDDING_MODEL: model, DATA_DIR } = settings
  if (model !== undefined && !model.startsWith('local/')) {
    const [{ createEmbedder }, { modelAccess }] = await Promise.all([
      import('../models/embedder.ts'),
      import('../config/model-access.ts')
    ])
    return createEmbedder(model, modelAccess(settings))
  }
  const folder = dataPaths(DATA_DIR).embeddings
  // Check the folder first: most users have no model there, and then its code is not loaded.
  const isInstalled = existsSync(folder) && (await import('../models/local/minilm-files.ts')).hasMinilm(folder)
  if (!isInstalled && model !== undefined) {
    logger.warn(`EMBEDDING_MODEL is "${model}", which is not in ${folder}: run mcp-orchestrator embeddings install.`)
  }
  if (!isInstalled) return undefined
  const { LocalEmbedder } = await import('../models/local/local-embedder.ts')
  return new LocalEmbedder({ folder })
}

/** Continues runs also if their client does not ask. */
async function followRuns(runs: CodeRuns, core: GatewayServices): Promise<void> {
  const [{ gatewayCalls }, { Discovery }] = await Promise.all([
    import('../gateway/code/gateway-calls.ts'),
    import('../gateway/execute/discovery.ts')
  ])
  const discovery = new Discovery()
  runs.follow(({ owner, door, client }) =>
    gatewayCalls(core, discovery, { caller: { owner, door, ...(client ? { client } : {}) } })
  )
}

/** Loaded if programs may be run. The engine is contacted when the first program starts. */
async function openCode(settings: Settings, logger: Logger, options: LoadOptions) {
  const { shared, environment } = options
  const { CodeRuns } = await import('../code/code-runs.ts')
  const realms = await openRealms(settings, logger, environment, options.reserveRealm)
  const { events, keyValues, inbox } = shared
  const runs = new CodeRuns({
    events,
    keyValues,
    inbox,
    openRealm: (request) => realms.open(request),
    // A gateway of its own may have other variables, and so other secrets, than a server with the same file.
    home: `${options.reserveRealm ? 'serve' : 'gateway'}:${resolve(settings.MCP_CONFIG)}`,
    limits: settings,
    logger
  })
  const closeRuns = runs.close.bind(runs)
  runs.close = async () => {
    await closeRuns()
    await realms.close()
  }
  return runs
}

/** Generates text with a model that the user has a key for; loaded on demand. */
function modelWriter(settings: Settings, logger: Logger, open: Models | undefined): WriteText | undefined {
  const { ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENAI_API_KEY, OPENAI_COMPATIBLE_BASE_URL, LLM_PROVIDER } = settings
  const isConfigured = ANTHROPIC_API_KEY ?? GEMINI_API_KEY ?? OPENAI_API_KEY ?? OPENAI_COMPATIBLE_BASE_URL
  if (LLM_PROVIDER === 'demo' || isConfigured === undefined) return undefined
  let models = open
  return async (request, signal) => {
    const { openModels, writeText } = await import('./app-models.ts')
    models ??= openModels(settings, logger)
    return writeText(models, request, signal)
  }
}
