/** Starts a workspace server in a sandbox and connects to it. What differs between engines is in `StartServer`. */
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/client'
import { INSIDE, SERVER_EXIT } from '../../../workspace-server/protocol.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { WorkspaceConnection } from '../port.ts'
import { staleEpoch, translateCallError } from './call-error.ts'
import { type Demux, StreamTransport } from './stream-transport.ts'
import { workspaceConnection } from './workspace-connection.ts'

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

/** A server's process in a sandbox, as its engine sees it. */
interface StartedServer {
  stream: Duplex
  /** Separates the server's output from its error output. */
  demux: Demux
  /** Waits a moment if the engine does not know yet; null if it does not say. */
  exitCode(): Promise<number | null>
  isRunning(): Promise<boolean>
}

/** Starts this command in the sandbox. It has its own deadline. */
export type StartServer = (cmd: string[]) => Promise<StartedServer>

export interface OpenConnectionOptions {
  start: StartServer
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
  const { containerId, logger, isEnding } = options
  const server = await options.start(serverCommand(options))
  const { stream, demux } = server
  const transport = new StreamTransport(stream, { demux, logger: logger.child({ containerId }), isEnding })
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
    throw ended ? await lostServer(server, transport) : failure
  }
  return workspaceConnection(containerId, client, transport, () => server.isRunning())
}

function serverCommand({ epoch, resume, gvisor }: OpenConnectionOptions): string[] {
  const node = gvisor ? INSIDE.readableNode : INSIDE.node
  // SIGUSR1 would open Node's debugger to every command in the container.
  const server = [node, '--disable-sigusr1', INSIDE.server, '--epoch', String(epoch)]
  return [...server, ...(resume ? ['--resume'] : []), ...(gvisor ? ['--hide'] : [])]
}

/** The engine knows the exit code; the output is only for the log. */
async function lostServer(server: StartedServer, transport: StreamTransport): Promise<AppError> {
  const code = await server.exitCode()
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
