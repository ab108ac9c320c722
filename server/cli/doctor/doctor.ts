/** `doctor` checks every part of an installation and tells how to fix what is broken. It creates one sandbox to test its limits. */

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { terminalLine, terminalText } from '../../../contract/hidden-characters.ts'
import { openModels } from '../../app/app-models.ts'
import { openEngine } from '../../app/engine/open-engine.ts'
import { findWrongFolder, openStore } from '../../app/open-store.ts'
import { loadRegistry } from '../../catalog/registry.ts'
import type { Settings } from '../../config/settings.ts'
import { userDefaults } from '../../config/user-folders.ts'
import { EXPOSED } from '../../connections/local/child-processes.ts'
import { findIsolation } from '../../connections/local/find-isolation.ts'
import { isolationMemory } from '../../connections/local/isolation-memory.ts'
import { operatorMessageOf } from '../../lib/errors.ts'
import { createLogger } from '../../lib/logger.ts'
import { plural } from '../../lib/plural.ts'
import { canLimitSocketMemory } from '../../sandbox/docker/engine/socket-memory.ts'
import type { KubernetesEngine } from '../../sandbox/kubernetes/kubernetes-engine.ts'
import type { SandboxEngine } from '../../sandbox/port.ts'
import { probeFolder, probeStore } from '../../storage/write-probe.ts'
import type { Command } from '../command.ts'
import { describeBucket } from './doctor-bucket.ts'
import { describeCredentials } from './doctor-credentials.ts'
import { describeDataDir } from './doctor-data.ts'
import { checkCluster } from './doctor-kubernetes.ts'
import { describeNode } from './doctor-node.ts'
import { describePort } from './doctor-port.ts'
import { describeLimits, describeUsers, listContents } from './doctor-sandbox.ts'
import { type Check, checkServers, type Found } from './doctor-servers.ts'

type Mark = 'ok' | 'warn' | 'FAILS'

export const doctorCommand: Command = {
  name: 'doctor',
  summary:
    'check Node, engine, image, limits, data folder, store, port, models and servers, and show how to fix what is broken',
  flags: {
    servers: { type: 'boolean', help: 'also start every server and list its tools' },
    image: { type: 'boolean', help: 'also list the packages in the sandbox image' }
  },
  mainSettings: [
    ...([
      'MCP_CONFIG',
      'DATA_DIR',
      'CREDENTIALS_FILE',
      'REDIS_URL',
      'HOST',
      'PORT',
      'LLM_PROVIDER',
      'LLM_MODEL'
    ] as const),
    ...(['SANDBOX_ENGINE', 'KUBECONFIG', 'KUBERNETES_NAMESPACE', 'KUBERNETES_IMAGE'] as const),
    ...(['SANDBOX_IMAGE', 'SANDBOX_RUNTIME', 'SANDBOX_NETWORK'] as const)
  ],
  defaults: doctorDefaults,
  async run(settings, { flags }) {
    const logger = createLogger('silent')
    const engine = await openEngine(settings, logger)
    const marks: Mark[] = []
    const check: Check = async (part, job) => {
      const [mark, text] = await job().then(
        (found): [Mark, string] => (typeof found === 'string' ? ['ok', found] : ['warn', found.warn]),
        (error): [Mark, string] => ['FAILS', operatorMessageOf(error)]
      )
      marks.push(mark)
      process.stdout.write(`${mark.padEnd(5)} ${part.padEnd(9)}${terminalText(text)}\n`)
      return mark === 'ok'
    }
    await check('node', () => describeNode())
    await check(
      'folders',
      async () => `servers in ${resolve(settings.MCP_CONFIG)}, data in ${resolve(settings.DATA_DIR)}`
    )
    const engineOk = await check('engine', () => describeEngine(engine, settings))
    if (engineOk && isCluster(engine)) {
      const isReady = await checkCluster(engine, check, settings.KUBERNETES_IMAGE ?? '')
      if (isReady) await check('limits', () => describeLimits(engine))
      if (isReady && flags.image === true) await check('contents', () => describeContents(engine))
    } else if (engineOk) {
      await check('users', () => describeUsers(engine, settings.SANDBOX_UIDS))
      await check('runtime', () => describeRuntime(engine, settings))
      const image = await check('image', () =>
        engine.ensureImage((line) => process.stdout.write(`      ${terminalLine(line)}\n`))
      )
      if (image) await check('limits', () => describeLimits(engine))
      if (image && flags.image === true) await check('contents', () => describeContents(engine))
    }
    if (!isCluster(engine)) await check('network', async () => describeNetwork(settings))
    await check('children', () => describeChildren(settings))
    await check('data', async () => describeDataDir(resolve(settings.DATA_DIR)))
    const hasStore = await check('store', () => describeStore(settings))
    if (settings.CHECKPOINT_STORE) await check('bucket', () => describeBucket(settings, hasStore))
    if (!isGatewayOnly(settings)) await check('port', () => describePort(settings))
    if (existsSync(resolve(settings.DATA_DIR)))
      await check('disk', () => probeFolder(resolve(settings.DATA_DIR), settings.MIN_FREE_MB))
    await check('models', () => describeModels(settings))
    const { CREDENTIALS_FILE } = settings
    if (CREDENTIALS_FILE) await check('secrets', () => describeSecrets(settings, CREDENTIALS_FILE))
    await checkServers(settings, check, flags.servers === true)
    await engine.close()
    return marks.includes('FAILS') ? 1 : 0
  }
}

/** If the user has a registry and this folder has no workspace, check the user's gateway. */
function doctorDefaults(env: Record<string, string | undefined>) {
  const user = userDefaults(env)
  const isWorkspace = existsSync('mcp.json') || existsSync('data')
  return isWorkspace || !existsSync(user.MCP_CONFIG) ? {} : user
}

async function describeEngine(engine: SandboxEngine, settings: Settings): Promise<Found> {
  try {
    const { name, version, cgroupVersion, containers } = await engine.status()
    const cgroup = cgroupVersion === '' ? '' : `, cgroup v${cgroupVersion}`
    const found = `${name} ${version}${cgroup}, ${plural(containers, 'container')}`
    return cgroupVersion === '1' && !canLimitSocketMemory() ? { warn: `${found}. ${NO_SOCKET_LIMIT}` } : found
  } catch (error) {
    if (await needsEngine(settings)) throw error
    return { warn: `${operatorMessageOf(error)} Only the workspace and servers with "sandbox" need it.` }
  }
}

function isCluster(engine: SandboxEngine): engine is KubernetesEngine {
  return 'api' in engine
}

const NO_SOCKET_LIMIT =
  'With cgroup v1, the socket buffers of sandboxes are limited only if this program runs as root on the machine of the engine: switch that machine to cgroup v2.'

/** Whether these are the settings of a stdio gateway, which needs no port. */
function isGatewayOnly({ MCP_CONFIG, DATA_DIR }: Settings): boolean {
  const user = userDefaults(process.env)
  return MCP_CONFIG === user.MCP_CONFIG && DATA_DIR === user.DATA_DIR
}

async function needsEngine(settings: Settings): Promise<boolean> {
  const { MCP_CONFIG } = settings
  if (!isGatewayOnly(settings)) return true
  // The check of the servers reports a file that can't be read.
  const registry = await loadRegistry(MCP_CONFIG, { optional: true }).catch(() => undefined)
  const servers = [...(registry?.servers.values() ?? [])]
  return servers.some((entry) => entry.kind === 'local' && entry.enabled && entry.sandbox !== undefined)
}

async function describeSecrets({ MCP_CONFIG }: Settings, file: string): Promise<Found> {
  const registry = await loadRegistry(resolve(MCP_CONFIG), { optional: true }).catch(() => undefined)
  return describeCredentials(resolve(file), registry?.servers.values() ?? [], [MCP_CONFIG])
}

async function describeRuntime(engine: SandboxEngine, settings: Settings): Promise<string> {
  const { runtimes } = await engine.status()
  const wanted = settings.SANDBOX_RUNTIME
  if (wanted === undefined) return `the engine's default; it has ${runtimes.join(', ')}`
  if (runtimes.includes(wanted)) return wanted
  throw new Error(
    `The engine has no runtime "${wanted}" (it has ${runtimes.join(', ')}): install it, or unset SANDBOX_RUNTIME.`
  )
}

async function describeContents(engine: SandboxEngine): Promise<string> {
  const lines = await listContents(engine)
  return [`${lines.length} packages`, ...lines].join('\n      ')
}

function describeNetwork(settings: Settings): Found {
  if (settings.SANDBOX_NETWORK === 'none') return 'none: sandboxes have no network'
  return {
    warn: `ON: all commands in sandboxes can reach the network "${settings.SANDBOX_NETWORK}"; the approval modes Preview and Review are off`
  }
}

async function describeChildren({ AUTH_TOKEN, DATA_DIR }: Settings): Promise<Found> {
  const isolation = await findIsolation({ memory: isolationMemory(resolve(DATA_DIR)) })
  if (isolation?.holdsSignals) return isolation.text
  const hosted = 'With AUTH_TOKEN, servers without "sandbox" are not started.'
  return { warn: AUTH_TOKEN === undefined ? EXPOSED : `${EXPOSED} ${hosted}` }
}

async function describeStore(settings: Settings): Promise<Found> {
  const folder = resolve(settings.DATA_DIR)
  // Don't create the folder: the next `doctor` would take it for a workspace, and it might belong to the wrong user.
  if (!settings.REDIS_URL && !existsSync(folder)) return `embedded; the first start creates ${folder}`
  const logger = createLogger('silent')
  const store = await openStore(settings, logger)
  try {
    await probeStore(store.keyValues)
    const live = await store.sessions.countLive()
    const found = `${settings.REDIS_URL ? 'Redis' : `embedded in ${settings.DATA_DIR}`}, ${live} live sandboxes`
    const wrong = await findWrongFolder(settings, store, logger)
    if (wrong !== undefined) throw new Error(`${wrong} Set DATA_DIR to the folder that all instances share.`)
    const risks = (await store.findRisks?.()) ?? []
    return risks.length > 0 ? { warn: [`${found}.`, ...risks].join(' ') } : found
  } finally {
    await store.close()
  }
}

async function describeModels(settings: Settings): Promise<Found> {
  const { models, providers, default: chosen } = await openModels(settings, createLogger('silent')).catalog()
  const failing = providers.filter(({ ok }) => !ok)
  if (failing.length > 0) throw new Error(failing.map(({ id, reason }) => `${id}: ${reason}`).join(' '))
  const found = `${models.length} from ${providers.map(({ id }) => id).join(', ')}; the default is ${chosen}`
  // Another model than the configured one may be worse or cost more.
  const lacking = providers.find(({ reason }) => reason !== undefined)?.reason
  const idle = settings.LLM_MODEL && providers.length === 1 && `LLM_MODEL is "${settings.LLM_MODEL}", but no key is set`
  const doubt = lacking ?? idle
  return doubt ? { warn: `${found}. ${doubt}` } : found
}
