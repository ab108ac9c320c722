import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/client'
import type Dockerode from 'dockerode'
import { INSIDE, SERVER_EXIT } from '../../../../workspace-server/protocol.ts'
import { AppError, isAppError } from '../../../lib/errors.ts'
import type { Logger } from '../../../lib/logger.ts'
import { backoffMs } from '../../../lib/waiting/backoff.ts'
import type { WorkspaceConnection } from '../../port.ts'
import { isRunning, unpauseContainer } from '../engine/container-state.ts'
import type { EngineCall } from '../engine/engine-call.ts'
import { execExitCode, prepareExec, startExec } from '../engine/exec.ts'
import { staleEpoch, translateCallError } from './call-error.ts'
import { DockerStreamTransport } from './docker-stream-transport.ts'
import { workspaceConnection } from './docker-workspace-connection.ts'

const EXEC_MS = 30_000
/** With fifty servers starting at once on two processors, one takes half a minute. Starting another would only slow both down. */
const INITIALIZE_MS = 60_000
const MAX_OUTPUT_CHARS = 1000
const MAX_ATTEMPTS = 5
const RETRY = { firstMs: 50, maxMs: 2000 }
const ABORTED = 134
const KILLED = 137
const ENDED_NORMALLY = 0
const COULD_NOT_RUN = 126
/** The engine is too busy to say how the server ended. */
const UNKNOWN = null
const TRANSIENT_EXITS = new Set<unknown>([ENDED_NORMALLY, COULD_NOT_RUN, ABORTED, KILLED, UNKNOWN])
/** Nothing here validates by JSON Schema, and a compiler for each connection would cost memory. */
const noValidator = {
  getValidator: () => () => ({ valid: false as const, data: undefined, errorMessage: 'not supported' })
}

export interface OpenConnectionOptions {
  docker: Dockerode
  call: EngineCall
  logger: Logger
  containerId: string
  epoch: number
  resume: boolean
  /** gVisor can't run an execute-only binary, so the server is hidden from commands in another way. */
  gvisor: boolean
  /** How long the server may take for its first answer. */
  initializeMs?: number | undefined
  /** Whether we are removing the container. */
  isEnding?: (() => boolean) | undefined
}

/** Starts a server in the container and performs the MCP handshake. Leaves no stream behind when it fails. */
export async function openConnection(options: OpenConnectionOptions): Promise<WorkspaceConnection> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryOpen(options)
    } catch (error) {
      // All of these are temporary: a server that is ending killed ours, a fork bomb left no thread for it, or a busy engine lost
      // its input or could not run it.
      const isTransient = isAppError(error, 'server_crashed') && TRANSIENT_EXITS.has(error.details.exitCode)
      if (!isTransient || attempt === MAX_ATTEMPTS) throw error
      await delay(backoffMs(attempt, RETRY))
    }
  }
}

async function tryOpen(options: OpenConnectionOptions): Promise<WorkspaceConnection> {
  const { docker, call, containerId, epoch, resume, gvisor, logger, isEnding } = options
  // SIGUSR1 would open Node's debugger to every command in the container.
  const server = [
    gvisor ? INSIDE.readableNode : INSIDE.node,
    '--disable-sigusr1',
    INSIDE.server,
    '--epoch',
    String(epoch)
  ]
  const cmd = [...server, ...(resume ? ['--resume'] : []), ...(gvisor ? ['--hide'] : [])]
  const request = { docker, call, containerId, cmd, workingDir: INSIDE.root, what: 'a server', ms: EXEC_MS }
  const exec = await unpaused(options, () => prepareExec(request))
  const stream = await unpaused(options, () => startExec(exec, call, 'a server', EXEC_MS))
  const transport = new DockerStreamTransport(stream, { logger: logger.child({ containerId }), isEnding })
  const client = new Client({ name: 'mcp-orchestrator', version: '1' }, { jsonSchemaValidator: noValidator })
  client.onerror = (error) =>
    logger.debug({ err: error, containerId }, 'The connection to a sandbox reported an error.')
  try {
    // We don't probe for a newer protocol version: we know this server, and a round trip takes time.
    await client.connect(transport, { timeout: options.initializeMs ?? INITIALIZE_MS })
  } catch (error) {
    const failure = translateCallError(error, 'initialize')
    // After a timeout the client closed the stream itself, so the server did not end first.
    const ended = failure.kind !== 'timeout' && (!transport.isOpen || failure.code === 'connection_lost')
    await transport.close()
    throw ended ? await whyEnded(exec, transport, options) : failure
  }
  return workspaceConnection(containerId, client, transport, () => isRunning(docker, call, containerId, exec))
}

/** Does the work, if need be after unpausing the container: an engine may accept a command that it then refuses to start. */
async function unpaused<T>({ docker, call, containerId }: OpenConnectionOptions, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isAppError(error, 'container_paused')) throw error
    await unpauseContainer(docker, call, containerId, EXEC_MS)
    return work()
  }
}

/** The exec knows the exit code; the output is only for the log. */
async function whyEnded(
  exec: Dockerode.Exec,
  transport: DockerStreamTransport,
  { call }: OpenConnectionOptions
): Promise<AppError> {
  const code = await execExitCode(exec, call)
  if (code === SERVER_EXIT.staleEpoch) return staleEpoch()
  if (code === SERVER_EXIT.takeoverFailed) {
    const message = 'The previous server in this sandbox has not ended yet; try again.'
    return new AppError('unavailable', 'takeover_failed', message)
  }
  if (code === SERVER_EXIT.nothingToResume)
    return new AppError('conflict', 'container_restarted', 'The container was restarted and has lost its files.')
  const printed = `${transport.noise()}${transport.stderr()}`.trim().slice(-MAX_OUTPUT_CHARS)
  return new AppError('unavailable', 'server_crashed', `The server in the sandbox ended at once (exit code ${code}).`, {
    details: { exitCode: code, output: printed }
  })
}
