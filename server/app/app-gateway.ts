/**
 * The second composition root: the gateway alone. It is separate from `app.ts` because it must start as fast as a bare MCP server. What a
 * call needs (store, router, MCP client) is loaded with the first call, and nothing of the workspace is loaded.
 */

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Grants, openGrants } from '../catalog/grants.ts'
import { describeProblem, loadRegistry, type Registry } from '../catalog/registry.ts'
import { RegistryWatch } from '../catalog/watch-registry.ts'
import type { Settings } from '../config/settings.ts'
import { serverFigures } from '../connections/server-state.ts'
import { Gateway } from '../gateway/execute/gateway.ts'
import type { ExposedOptions } from '../gateway/expose/exposed.ts'
import type { GatewayOptions, GatewayServices } from '../gateway/gateway-services.ts'
import { AppError } from '../lib/errors.ts'
import { packageVersion } from '../lib/files/package-version.ts'
import type { Logger } from '../lib/logger.ts'
import { Lazy } from '../lib/waiting/lazy.ts'
import { dataPaths } from './data-paths.ts'
import type { LoadedGateway, LoadOptions } from './load-gateway.ts'
import type { SharedParts } from './shared-parts.ts'

export type GatewayApp = Awaited<ReturnType<typeof createGatewayApp>>

export interface GatewayAppOptions
  extends Pick<GatewayOptions, 'refused'>,
    Pick<LoadOptions, 'environment' | 'models' | 'dotenv' | 'readsDotenv' | 'hidesReasons' | 'reserveRealm'> {
  /** Treat a missing registry as empty. */
  optionalRegistry: boolean
  /** Parts that are already open; the caller closes them. */
  shared?: SharedParts
}

const MAX_STOP_MS = 15_000
const QUIET_MS = 2000

/** Throws if the registry as a whole, or the credentials file, can't be used. */
export async function createGatewayApp(settings: Settings, logger: Logger, options: GatewayAppOptions) {
  const file = resolve(settings.MCP_CONFIG)
  let registry = await loadRegistry(file, { optional: options.optionalRegistry })
  if (settings.CREDENTIALS_FILE !== undefined) {
    const { openCredentials } = await import('../catalog/credentials.ts')
    openCredentials({ file: settings.CREDENTIALS_FILE, environment: {}, ours: [] }).source()
  }
  for (const problem of registry.problems) logger.warn(describeProblem(file, problem))
  const grants = openGrants(settings)
  const gateway = new Lazy(() => loadWith(settings, logger, { ...options, grants }, registry))
  const watch = new RegistryWatch(registry, {
    file,
    logger,
    async onChange(next, { removed, changed, metadataChanged }) {
      registry = next
      const loaded = await gateway.opened
      loaded?.update(next)
      const off = metadataChanged.filter(({ enabled }) => !enabled)
      for (const { name } of [...removed, ...changed, ...off]) loaded?.core.connections.retire(name)
    }
  })
  const version = packageVersion()
  let loaded: GatewayServices | undefined
  let continueSoon: NodeJS.Timeout | undefined
  const registryProblem = () => {
    if (watch.problem !== undefined)
      return `${watch.problem} The servers are those of the last file that could be used.`
    return registry.servers.size === 0 && !existsSync(file) ? `${file} is missing, so there are no servers.` : undefined
  }
  const core = async () => {
    loaded ??= { ...(await gateway.get()).core, registryProblem }
    return loaded
  }
  const expose = readExpose(settings.GATEWAY_EXPOSE, file, registry)
  const extraTools = await openExtraTools(settings)
  const face = { version, logger, refused: options.refused }
  return {
    gateway: new Gateway({ ...face, core, extraTools }),
    version,
    file,
    registry: () => registry,
    /** Why the current file can't be used. */
    registryProblem: () => watch.problem,
    /** Applies the current content of the file. */
    reload: () => watch.reload(),
    /** The services behind the tools; loaded with the first call. */
    core,
    /** These services if they are already loaded; this loads nothing. */
    loaded: () => loaded,
    /** Folder with the stderr output of servers. */
    logDir: dataPaths(settings.DATA_DIR).serverLogs,
    grants,
    credentialsFile: settings.CREDENTIALS_FILE,
    /** With `GATEWAY_EXPOSE`: what clients see instead of the four tools. */
    ...(expose ? { exposed: lazyExposed({ only: expose.only, ...face }, core) } : {}),
    watch() {
      watch.start()
      continueSoon = continuePrograms(settings, logger, core, options.shared ? 0 : QUIET_MS)
    },
    async stop(): Promise<void> {
      watch.close()
      clearTimeout(continueSoon)
      // Shutdown waits on timers that don't keep the process alive. Without this timer, the process would end too early.
      const awake = setTimeout(() => {}, MAX_STOP_MS)
      try {
        await (await gateway.opened?.catch(() => undefined))?.close()
      } finally {
        clearTimeout(awake)
      }
    }
  }
}

async function openExtraTools({ GATEWAY_CODE }: Settings) {
  return GATEWAY_CODE === 'true' ? [(await import('../gateway/code/run-code.ts')).runCodeTool()] : []
}

/** Programs of clients go on although no client calls. A gateway with one client waits until that has started. */
function continuePrograms(
  { GATEWAY_CODE }: Settings,
  logger: Logger,
  core: () => Promise<unknown>,
  afterMs: number
): NodeJS.Timeout | undefined {
  if (GATEWAY_CODE !== 'true') return undefined
  const report = (error: unknown) =>
    logger.warn({ err: error }, 'Programs of clients do not go on before the next call.')
  return setTimeout(() => void core().catch(report), afterMs).unref()
}

/** Opens the missing parts while the code is loaded. */
async function loadWith(
  settings: Settings,
  logger: Logger,
  { shared, ...options }: GatewayAppOptions & { grants: Grants },
  registry: Registry
): Promise<LoadedGateway> {
  const metrics = shared ? undefined : await openMetrics(settings, logger)
  const open = async () =>
    (await import('./shared-parts.ts')).openSharedParts(settings, logger, {
      environment: options.environment,
      observer: metrics?.observer
    })
  const close = async () => {}
  const [{ loadGateway }, parts] = await Promise.all([
    import('./load-gateway.ts'),
    shared ? { ...shared, close } : open()
  ])
  const gateway = await loadGateway(settings, logger, { ...options, shared: parts }, registry)
  const { connections, index } = gateway.core
  metrics?.watchServers(() =>
    serverFigures(
      index.entries().map(({ name }) => name),
      connections
    )
  )
  return {
    ...gateway,
    async close() {
      await gateway.close()
      await parts.close()
      await metrics?.close()
    }
  }
}

/** Loaded on demand: most gateways write no metrics. */
async function openMetrics({ METRICS_FILE: file }: Settings, logger: Logger) {
  if (file === undefined) return undefined
  const { openMetricsFile } = await import('./gateway/metrics-file.ts')
  return openMetricsFile(file, logger)
}

/** All servers if `only` is undefined. */
function readExpose(value: string | undefined, file: string, { servers }: Registry): { only?: string } | undefined {
  if (value === undefined) return undefined
  if (value === 'all') return {}
  if (servers.get(value)?.enabled) return { only: value }
  const problem = servers.has(value)
    ? `"${value}", which is switched off`
    : `"${value.slice(0, 100)}", which is not there`
  const message = `GATEWAY_EXPOSE (--expose) must be "all" or a server in ${file}; it is ${problem}.`
  throw new AppError('invalid', 'invalid_setting', message)
}

function lazyExposed(options: Omit<ExposedOptions, 'core'>, core: () => Promise<GatewayServices>) {
  const exposed = new Lazy(async () => {
    const { Exposed } = await import('../gateway/expose/exposed.ts')
    return new Exposed({ ...options, core: await core() })
  })
  return () => exposed.get()
}
