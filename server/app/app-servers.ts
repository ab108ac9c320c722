/** The servers of the registry as tool sources for the chat. Every call needs approval unless a rule says otherwise. */
import { isOwnSource } from '../../contract/own-sources.ts'
import type { ToolSource } from '../calls/tool-source.ts'
import type { ImportPlace } from '../catalog/import/client-files.ts'
import type { Settings } from '../config/settings.ts'
import { userHome } from '../config/user-folders.ts'
import { NO_CHILDREN, senderOf } from '../connections/local/peer-process.ts'
import { readServerLog } from '../connections/server-log.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { isLoopbackHost } from '../lib/web/browser-proof.ts'
import { type ApprovalPolicy, createPolicy, rulesOf } from '../policy/approval-policy.ts'
import type { DefinitionGuard } from '../policy/definition-guard.ts'
import { SenderCheck, type SenderCheckOptions } from '../sessions/access/sender-check.ts'
import type { FindTools } from '../sessions/turns/router-source.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { ServerDirectory } from '../tools/server-directory.ts'
import { serverToolSource } from '../tools/server-tool-source.ts'
import type { GatewayApp } from './app-gateway.ts'

export interface ChatServers {
  sources: () => ToolSource[]
  policy: ApprovalPolicy
  find: FindTools
  /** Teaches the router which tool a message was for. */
  learn(request: string, call: { server: string; name: string }, owner: string, sessionId: string): Promise<void>
  /** Forgets what was learnt in a session; undefined if nothing is loaded, so that only the store can know it. */
  forgetSession(sessionId: string): Promise<void> | undefined
}

export function chatServers(gateway: Pick<GatewayApp, 'registry' | 'core' | 'loaded'>, logger: Logger): ChatServers {
  const enabled = () =>
    [...gateway.registry().servers.values()].filter(({ name, enabled: on }) => on && !isOwnSource(name))
  // Loaded before the first turn needs it.
  if (enabled().length > 0) {
    gateway.core().catch((error) => {
      logger.warn({ err: error }, `The chat can't offer the servers of mcp.json: ${messageOf(error)}`)
    })
  }
  let seen: ReturnType<GatewayApp['registry']> | undefined
  let policy: ApprovalPolicy = createPolicy([])
  return {
    async learn(request, { server, name }, owner, sessionId) {
      const [core, { learnFrom }] = await Promise.all([gateway.core(), import('../gateway/execute/execute.ts')])
      // Unless the server still has it, the model made the name up or something else answered.
      if (core.index.tool(server, name)) learnFrom(core, request, { server, tool: name }, owner, sessionId)
    },
    forgetSession: (sessionId) => gateway.loaded()?.forgetSession?.(sessionId),
    async find(request, { signal, ...options }) {
      const [core, { routeRequest }] = await Promise.all([
        gateway.core(),
        import('../gateway/execute/route-request.ts')
      ])
      return routeRequest(core, request, options, signal)
    },
    sources: () => enabled().map(({ name, alternatives }) => serverToolSource(name, gateway.core, alternatives)),
    policy(server, tool) {
      if (seen !== gateway.registry()) {
        seen = gateway.registry()
        policy = createPolicy(rulesOf(enabled()))
      }
      return policy(server, tool)
    }
  }
}

/** Checks which local programs may act here. Loads nothing. */
export function openSenderCheck(
  { loaded, registry }: Pick<GatewayApp, 'loaded' | 'registry'>,
  entrance: Pick<SenderCheckOptions, 'instance' | 'admin' | 'addressOf'>
): SenderCheck {
  return new SenderCheck({
    ...entrance,
    senderOf: (socket) => loaded()?.connections.senderOf(socket) ?? senderOf(socket, NO_CHILDREN),
    // One that was just switched off may still be ending.
    hasLocalServers: () =>
      (loaded()?.connections.childPids.length ?? 0) > 0 ||
      [...registry().servers.values()].some((entry) => entry.enabled && entry.kind === 'local' && !entry.sandbox)
  })
}

/** Where other clients of the user keep their servers. Missing if others than this machine can reach this instance. */
export function importPlace(
  { HOST }: Pick<Settings, 'HOST'>,
  environment: Record<string, string | undefined>
): ImportPlace | undefined {
  if (!isLoopbackHost(HOST.includes(':') ? `[${HOST}]` : HOST)) return undefined
  return { home: userHome(environment), folder: process.cwd(), environment }
}

const LOG_LINES = 200

/** The same servers for the Servers page. */
/** Whether people use this instance who do not administer it. They see neither commands nor paths. */
export function hasMembers({ AUTH_TOKEN, ADMIN_TOKEN }: Pick<Settings, 'AUTH_TOKEN' | 'ADMIN_TOKEN'>): boolean {
  return AUTH_TOKEN !== undefined || ADMIN_TOKEN !== undefined
}

export function serverDirectory(
  gateway: GatewayApp,
  keyValues: KeyValueStore,
  policy: ApprovalPolicy,
  guard: DefinitionGuard,
  place?: ImportPlace
): ServerDirectory {
  const { core, logDir } = gateway
  const log = async (server: string, owner: string) => {
    const live = (await core()).connections.logTail(server, owner)
    return live === '' ? ((await readServerLog(logDir, server, LOG_LINES, owner)) ?? []).join('\n') : live
  }
  return new ServerDirectory({
    ...gateway,
    problem: gateway.registryProblem,
    keyValues,
    policy,
    guard,
    log,
    importPlace: place
  })
}
