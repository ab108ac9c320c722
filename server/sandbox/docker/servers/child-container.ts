import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type Dockerode from 'dockerode'
import { INSIDE } from '../../../../workspace-server/protocol.ts'
import { AppError } from '../../../lib/errors.ts'
import type { Logger } from '../../../lib/logger.ts'
import type { ChildContainer, ChildContainerRequest } from '../../child-port.ts'
import type { OwnService } from '../../egress/own-ports.ts'
import type { SandboxLimits } from '../../port.ts'
import { isGvisor } from '../engine/container-spec.ts'
import { createContainer, startCreated } from '../engine/create-container.ts'
import type { EngineCall } from '../engine/engine-call.ts'
import { type ExecStreams, execStreams } from '../engine/exec-streams.ts'
import { removeContainer } from '../engine/remove-container.ts'
import { HEARTBEAT_MS, launchInput, launchScript } from './child-scripts.ts'
import { childSpec } from './child-spec.ts'
import { openEgressTunnel, proxyVariables } from './egress-tunnel.ts'

const QUICK_MS = 10_000
const GRACE_MS = 1000
/** The supervisor needs half a second to shut down. */
const SUPERVISOR_SHUTDOWN_MS = 1500
const NOT_FOUND = 127
const KILLED = 137

export interface StartChildOptions {
  docker: Dockerode
  call: EngineCall
  limits: SandboxLimits
  image: string
  instance: string
  ownServices: OwnService[]
  request: ChildContainerRequest
  logger: Logger
}

export async function startChildContainer(options: StartChildOptions): Promise<ChildContainer> {
  const { docker, call, request, logger } = options
  for (const name of Object.keys(request.env))
    if (!/^[A-Za-z_]\w*$/.test(name)) throw unusableName(request.server, name)
  const id = await create(options)
  let hold: Duplex | undefined
  try {
    hold = await attachAndStart(options, id)
    // The command waits for its environment, which is sent only when the network is open.
    const [run] = await Promise.all([runCommand(options, id), openNetwork(options, id)])
    run.stdin.write(launchInput({ HOME: INSIDE.root, ...proxyVariables(request.hosts), ...request.env }))
    return asChild(options, { id, hold, run })
  } catch (error) {
    hold?.destroy()
    await removeContainer(docker, call, id).catch((err) => logger.warn({ err, id }, 'container left behind'))
    throw error
  }
}

async function create({ docker, call, logger, request, ...spec }: StartChildOptions): Promise<string> {
  const { server, cwd, folders } = request
  const readable = cwd === undefined ? folders : [...new Set([cwd, ...folders])]
  return createContainer({ docker, call, logger, uids: spec.limits.uids }, (uid) =>
    childSpec({ ...spec, uid, server, folders: readable, createdAt: Date.now() })
  )
}

/** Attaches before it starts the container, so that from the first moment the container ends when we do. */
async function attachAndStart({ docker, call }: StartChildOptions, id: string): Promise<Duplex> {
  const container = docker.getContainer(id)
  const hold = await call({ to: 'attach to a container', ms: QUICK_MS }, (abortSignal) =>
    container.attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true, abortSignal })
  )
  const socket: Duplex = hold as Duplex
  socket.on('error', () => {})
  socket.resume()
  try {
    await startCreated(docker, call, id)
  } catch (error) {
    socket.destroy()
    throw error
  }
  const heart = setInterval(() => socket.write('\n'), HEARTBEAT_MS).unref()
  socket.once('close', () => clearInterval(heart))
  return socket
}

async function runCommand(
  { docker, call, limits, request }: StartChildOptions,
  containerId: string
): Promise<ExecStreams> {
  const { command, args, cwd } = request
  const script = launchScript({ gvisor: isGvisor(limits) })
  const cmd = ['/bin/bash', '-c', script, 'launch', command, ...args]
  return execStreams({ docker, call, containerId, cmd, workingDir: cwd ?? INSIDE.root })
}

async function openNetwork(
  { docker, call, request, ownServices }: StartChildOptions,
  containerId: string
): Promise<void> {
  const { hosts, onDenied } = request
  if (hosts.length > 0) await openEgressTunnel({ docker, call, containerId, hosts, ownServices, onDenied })
}

function asChild(
  { docker, call, limits, request, logger }: StartChildOptions,
  { id, hold, run }: { id: string; hold: Duplex; run: ExecStreams }
): ChildContainer {
  const { stdin, stdout, stderr } = run
  const exited = run.ended.then(async () => whyEnded(await run.exitCode(), request, limits))
  let removed: Promise<void> | undefined
  const remove = async () => {
    const closed = hold.closed ? undefined : once(hold, 'close').catch(() => {})
    hold.end()
    await Promise.race([closed, delay(SUPERVISOR_SHUTDOWN_MS, undefined, { ref: false })])
    hold.destroy()
    run.destroy()
    await removeContainer(docker, call, id).catch((err) => logger.warn({ err, id }, 'container left behind'))
  }
  const stop = async (graceMs = GRACE_MS) => {
    stdin.end()
    await Promise.race([exited, delay(graceMs, undefined, { ref: false })])
    removed ??= remove()
    await removed
  }
  // Without its command the container is useless. Without its supervisor it is already gone.
  void exited.then(() => stop(0))
  hold.once('close', () => run.destroy())
  return { id, stdin, stdout, stderr, exited, stop }
}

function whyEnded(code: number | null, { command }: ChildContainerRequest, { memoryMb }: SandboxLimits): string {
  if (code === null) return 'its container has ended'
  const ended = `it ended with exit code ${code}`
  if (code === NOT_FOUND) return `${ended}; check that its image has a command "${command}"`
  if (code === KILLED) return `${ended}: it was killed, perhaps for using more than its ${memoryMb} MB of memory`
  return ended
}

function unusableName(server: string, name: string): AppError {
  const message = `The server "${server}" can't be started: "${name.slice(0, 100)}" is not a valid name for a variable in a sandbox.`
  return new AppError('invalid', 'server_not_startable', message, { details: { permanent: true } })
}
