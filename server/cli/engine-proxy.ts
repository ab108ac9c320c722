import { once } from 'node:events'
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { resolve } from 'node:path'
import { decimal, type ParseValue, wholeNumber } from '../config/parse-value.ts'
import { AppError, hasCode } from '../lib/errors.ts'
import { createLogger } from '../lib/logger.ts'
import { CEILINGS } from '../sandbox/engine-proxy/create-rules.ts'
import { closeEngineProxy, createEngineProxy } from '../sandbox/engine-proxy/engine-proxy.ts'
import type { Command, CommandInput } from './command.ts'
import { usageError } from './usage-error.ts'

const ENGINE_SOCKET = '/var/run/docker.sock'
/** How long calls and open streams may continue during shutdown. */
const GRACE_MS = 1000

export const engineProxyCommand: Command = {
  name: 'engine-proxy',
  summary: 'run a proxy that allows only the engine calls that sandboxes need; point DOCKER_HOST of serve at it',
  mainSettings: ['SANDBOX_UIDS', 'SANDBOX_RUNTIME', 'LOG_LEVEL'],
  flags: {
    listen: { type: 'string', help: 'path of the socket to create' },
    engine: { type: 'string', help: `socket of the engine (${ENGINE_SOCKET})` },
    network: { type: 'string', multiple: true, help: 'an engine network that sandboxes may use; can be repeated' },
    'max-memory-mb': { type: 'string', help: `maximum memory of one container (${CEILINGS.memoryMb})` },
    'max-cpus': { type: 'string', help: `maximum processors of one container (${CEILINGS.cpus})` },
    'max-pids': { type: 'string', help: `maximum number of processes in one container (${CEILINGS.pids})` }
  },
  async run(settings, { flags }) {
    const { listen: given, engine, network } = flags
    if (typeof given !== 'string' || given === '') {
      throw usageError('Say where to listen: engine-proxy --listen /run/mcp/docker.sock')
    }
    // Make it absolute: a bare number would be a port that is open to the network.
    const listen = resolve(given)
    const logger = createLogger(settings.LOG_LEVEL)
    const proxy = createEngineProxy({
      engineSocket: typeof engine === 'string' ? engine : ENGINE_SOCKET,
      networks: Array.isArray(network) ? network : [],
      uids: settings.SANDBOX_UIDS,
      runtime: settings.SANDBOX_RUNTIME,
      most: {
        memoryMb: numberOf(flags, 'max-memory-mb', wholeNumber(16, 1_048_576)) ?? CEILINGS.memoryMb,
        cpus: numberOf(flags, 'max-cpus', decimal(0.01, 512)) ?? CEILINGS.cpus,
        pids: numberOf(flags, 'max-pids', wholeNumber(16, 32_768)) ?? CEILINGS.pids
      },
      logger
    })
    const stopped = Promise.withResolvers<void>()
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        stopped.resolve()
        // Exit even if something still keeps the process alive.
        setTimeout(() => process.exit(0), 2 * GRACE_MS).unref()
      })
    }
    proxy.once('error', (error) =>
      stopped.reject(
        new AppError('unavailable', 'proxy_failed', `The engine proxy can't listen at ${listen}: ${error.message}.`)
      )
    )
    await makeRoom(listen)
    // Members of its group may create sandboxes, as with the engine's own socket.
    proxy.listen(listen, () => chmodSync(listen, 0o660))
    proxy.once('listening', () => process.stderr.write(`The engine proxy listens at ${listen}\n`))
    await stopped.promise
    await closeEngineProxy(proxy, GRACE_MS)
    return 0
  }
}

/** Removes the socket of an earlier proxy. Keeps other files, and sockets that something listens at: that may be the engine. */
async function makeRoom(path: string): Promise<void> {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) return
  const socket = connect({ path })
  try {
    await once(socket, 'connect')
  } catch (error) {
    if (hasCode(error, 'ECONNREFUSED')) rmSync(path)
    return
  } finally {
    socket.destroy()
  }
  const message = `Another process already listens at ${path}: stop it, or choose another path with --listen.`
  throw new AppError('conflict', 'proxy_failed', message)
}

function numberOf(flags: CommandInput['flags'], name: string, parse: ParseValue<number>): number | undefined {
  const given = flags[name]
  return typeof given === 'string' ? parse(given, `--${name}`) : undefined
}
