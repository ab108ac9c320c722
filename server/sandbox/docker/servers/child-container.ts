import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type Dockerode from 'dockerode'
import { INSIDE } from '../../../../workspace-server/protocol.ts'
import type { Logger } from '../../../lib/logger.ts'
import type { ChildContainer, ChildContainerRequest } from '../../child-port.ts'
import type { OwnService } from '../../egress/own-ports.ts'
import type { SandboxLimits } from '../../port.ts'
import { openEgressTunnel, proxyVariables } from '../../servers/egress-tunnel.ts'
import { checkNames, launchInput, launchScript, whyEnded } from '../../servers/launch-command.ts'
import { isRunsc } from '../engine/container-spec.ts'
import { createContainer, startCreated } from '../engine/create-container.ts'
import type { EngineCall } from '../engine/engine-call.ts'
import { type ExecStreams, execStreams } from '../engine/exec-streams.ts'
import { removeContainer } from '../engine/remove-container.ts'
import { HEARTBEAT_MS } from './child-scripts.ts'
import { childSpec } from './child-spec.ts'

const QUICK_MS = 10_000
const GRACE_MS = 1000
/** The supervisor needs half a second to shut down. */
const SUPERVISOR_SHUTDOWN_MS = 1500

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
  checkNames(request)
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
  // Under gVisor, the probe would test gVisor's kernel and not the host's.
  const script = launchScript({ probes: !isRunsc(limits) })
  const cmd = ['/bin/bash', '-c', script, 'launch', command, ...args]
  return execStreams({ docker, call, containerId, cmd, workingDir: cwd ?? INSIDE.root })
}

async function openNetwork(
  { docker, call, request, ownServices }: StartChildOptions,
  containerId: string
): Promise<void> {
  const { hosts, onDenied } = request
  const run = (cmd: string[]) => execStreams({ docker, call, containerId, cmd, workingDir: INSIDE.root })
  if (hosts.length > 0) await openEgressTunnel({ run, hosts, ownServices, onDenied })
}

function asChild(
  { docker, call, limits, request, logger }: StartChildOptions,
  { id, hold, run }: { id: string; hold: Duplex; run: ExecStreams }
): ChildContainer {
  const { stdin, stdout, stderr } = run
  const exited = run.ended.then(async () => whyEnded(await run.exitCode(), request.command, limits.memoryMb))
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
