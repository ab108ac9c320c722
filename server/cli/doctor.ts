/** Says for each part that the workspace needs whether it is there, or what to do. Makes one sandbox to see its limits for real. */
import { openEngine, openStore } from '../app.ts'
import { openModels } from '../app-models.ts'
import type { Settings } from '../config/settings.ts'
import { messageOf } from '../lib/errors.ts'
import { createLogger } from '../lib/logger.ts'
import type { SandboxEngine } from '../sandbox/port.ts'
import { findIsolation } from '../tools/connections/child-isolation.ts'
import type { Command } from './command.ts'
import { describeNode } from './doctor-node.ts'
import { describeLimits, listContents } from './doctor-sandbox.ts'
import { checkServers } from './doctor-servers.ts'

interface Finding {
  part: string
  ok: boolean
  text: string
}

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'checks Node, engine, image, runtime, limits, store, models and servers, and says what to do',
  flags: {
    servers: { type: 'boolean', help: 'also starts every server, to see its tools' },
    image: { type: 'boolean', help: 'also lists what is in the sandbox image, with versions' }
  },
  async run(settings, { flags }) {
    const logger = createLogger('silent')
    const engine = openEngine(settings, logger)
    const findings: Finding[] = []
    const check = async (part: string, job: () => Promise<string>) => {
      const found = await job().then(
        (text) => ({ part, ok: true, text }),
        (error) => ({ part, ok: false, text: messageOf(error) })
      )
      findings.push(found)
      process.stdout.write(`${found.ok ? 'ok   ' : 'FAILS'} ${part.padEnd(9)}${found.text}\n`)
      return found.ok
    }
    await check('node', () => describeNode())
    const engineOk = await check('engine', () => describeEngine(engine))
    if (engineOk) {
      await check('runtime', () => describeRuntime(engine, settings))
      const image = await check('image', () => engine.ensureImage((line) => process.stdout.write(`      ${line}\n`)))
      if (image) await check('limits', () => describeLimits(engine))
      if (image && flags.image === true) await check('contents', () => describeContents(engine))
    }
    await check('network', async () => describeNetwork(settings))
    await check('children', describeChildren)
    await check('store', () => describeStore(settings))
    await check('models', () => describeModels(settings))
    await checkServers(settings, check, flags.servers === true)
    await engine.close()
    return findings.every(({ ok }) => ok) ? 0 : 1
  }
}

async function describeEngine(engine: SandboxEngine): Promise<string> {
  const { version, cgroupVersion, containers } = await engine.status()
  return `Docker ${version}, cgroup v${cgroupVersion}, ${containers} containers`
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

function describeNetwork(settings: Settings): string {
  if (settings.SANDBOX_NETWORK === 'none') return 'none: sandboxes have no network'
  return `ON: sandboxes are on the network "${settings.SANDBOX_NETWORK}", and so is everything that runs in them`
}

async function describeChildren(): Promise<string> {
  const isolation = await findIsolation()
  if (isolation) return isolation.text
  return "not kept apart here: a server can read the secrets of the others; give those you don't trust a sandbox in mcp.json"
}

async function describeStore(settings: Settings): Promise<string> {
  const store = await openStore(settings, createLogger('silent'))
  try {
    const live = await store.sessions.countLive()
    return `${settings.REDIS_URL ? 'Redis' : `embedded in ${settings.DATA_DIR}`}, ${live} live sandboxes`
  } finally {
    await store.close()
  }
}

async function describeModels(settings: Settings): Promise<string> {
  const { models, providers, default: chosen } = await openModels(settings, createLogger('silent')).catalog()
  const failing = providers.filter(({ ok }) => !ok)
  if (failing.length > 0) throw new Error(failing.map(({ id, reason }) => `${id}: ${reason}`).join(' '))
  return `${models.length} from ${providers.map(({ id }) => id).join(', ')}; the default is ${chosen}`
}
