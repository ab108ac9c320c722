import { setTimeout as delay } from 'node:timers/promises'
import type { V1Pod } from '@kubernetes/client-node'
import { CHECK, type CheckResult, INSIDE, MAX_REACH_MS, type ReachParams } from '../../../workspace-server/protocol.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { ByteTail } from '../../lib/streams/byte-tail.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { ChildContainer, ChildContainerRequest } from '../child-port.ts'
import type { OwnService } from '../egress/own-ports.ts'
import type { SandboxLimits } from '../port.ts'
import { openEgressTunnel, proxyVariables } from '../servers/egress-tunnel.ts'
import { checkNames, launchInput, launchScript, whyEnded } from '../servers/launch-command.ts'
import { checkResult } from '../workspace/result-schema.ts'
import type { ClusterApi } from './api/cluster-api.ts'
import { commandOf, type ExecCommand } from './api/exec-command.ts'
import { startPod } from './create-pod.ts'
import { whilePodRuns } from './find-pod.ts'
import { type CommonTargets, checkClosed, nodeTargets } from './network-check.ts'
import { checkPodLimits } from './pod-limits.ts'
import { LABEL, limitedCommand, type PodOptions } from './pod-spec.ts'
import { podId, splitId } from './pod-state.ts'

const CHILD_APP = 'child'
const GRACE_MS = 1000
/** The holder needs half a second to end everything. */
const END_MS = 1500
const HEARTBEAT_MS = 15_000
const SILENCE_SECONDS = 90
/** A new process of Node, with the time that it tries the targets. */
const CHECK_MS = MAX_REACH_MS + 20_000
const MAX_ANSWER_BYTES = 64 * 1024

/**
 * Runs beside the server until its input closes or stays silent. The input closes when our process ends, even if it is killed. Until
 * then, it touches the file that the idle init looks at. Then it ends every process, the idle init last, which ends the pod.
 */
const HOLD = `
trap '' TERM HUP INT
alive=${INSIDE.state}/alive
: >"$alive"
while read -r -t ${SILENCE_SECONDS} _; do : >"$alive"; done
kill -TERM -1 2>/dev/null
for _ in 1 2 3 4 5; do sleep 0.1 || break; done
kill -KILL -1 2>/dev/null
kill -TERM 1
`

export interface StartChildPodOptions {
  api: ClusterApi
  limits: SandboxLimits
  pods: PodOptions
  startMs: number
  instance: string
  /** The targets that the pod must not reach; missing if the administrator accepts that it does. */
  closed: CommonTargets | undefined
  /** The services that the proxy must not reach. */
  services: OwnService[]
  request: ChildContainerRequest
  logger: Logger
  /** Fires when nobody waits for the start any more. */
  signal: AbortSignal
}

export async function startChildPod(options: StartChildPodOptions): Promise<ChildContainer> {
  const { request } = options
  checkNames(request)
  const pod = await startPod({ ...options, idleSeconds: SILENCE_SECONDS }, labelsOf(options))
  let hold: ExecCommand | undefined
  try {
    hold = holding(await exec(options, pod, ['/bin/bash', '-c', HOLD]))
    await verify(options, pod)
    // The command waits for its environment, which is sent only when the network is open.
    const [run] = await Promise.all([runCommand(options, pod), openNetwork(options, pod)])
    run.stdin.write(launchInput({ HOME: INSIDE.root, ...proxyVariables(request.hosts), ...request.env }))
    return asChild(options, { pod, hold, run })
  } catch (error) {
    hold?.destroy()
    await remove(options, pod)
    throw error
  }
}

function labelsOf({ instance, request }: StartChildPodOptions): Record<string, string> {
  const server = request.server.replaceAll(/[^A-Za-z0-9]+/g, '-').replace(/^-/, '')
  return { [LABEL.app]: CHILD_APP, [LABEL.instance]: instance, [LABEL.server]: server.slice(0, 60).replace(/-$/, '') }
}

async function exec({ api, limits, signal }: StartChildPodOptions, pod: V1Pod, cmd: string[]): Promise<ExecCommand> {
  const containerId = podId(pod)
  const open = () => api.exec(splitId(containerId).name, limitedCommand(limits, cmd))
  return commandOf(await whilePodRuns({ api, containerId, signal }, open))
}

function holding(hold: ExecCommand): ExecCommand {
  hold.stdout.resume()
  hold.stderr.resume()
  const heart = setInterval(() => hold.stdin.write('\n'), HEARTBEAT_MS).unref()
  void hold.ended.then(() => clearInterval(heart))
  return hold
}

/** The same checks as for a session's sandbox, made by a short process: such a pod has no workspace server. */
async function verify(options: StartChildPodOptions, pod: V1Pod): Promise<void> {
  const { closed, limits, pods } = options
  const targets = closed ? [...nodeTargets(pod.status), ...(await closed.get())] : []
  let seen: CheckResult['limits'] | undefined
  const reach = async (params: ReachParams) => {
    const { limits: found, reached } = await check(options, pod, params)
    seen = found
    return reached
  }
  await checkClosed({ reach }, targets)
  if (seen) checkPodLimits(limits, pods, seen)
}

async function check(options: StartChildPodOptions, pod: V1Pod, params: ReachParams): Promise<CheckResult> {
  const cmd = [INSIDE.readableNode, '--disable-sigusr1', INSIDE.server, CHECK.command]
  const { signal } = options
  const deadline = { what: 'the check of a pod', ms: CHECK_MS, code: 'engine_timeout', signal }
  return withDeadline(deadline, async () => {
    const run = await exec(options, pod, cmd)
    const answer = new ByteTail(MAX_ANSWER_BYTES)
    const errors = new ByteTail(MAX_ANSWER_BYTES)
    run.stdout.on('data', (chunk: Buffer) => answer.push(chunk))
    run.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
    run.stdin.end(JSON.stringify(params))
    await run.ended
    try {
      return checkResult.parse(JSON.parse(answer.text()))
    } catch {
      const where = errors.text().trim().slice(-300)
      throw new AppError('unavailable', 'server_crashed', 'The check of a pod gave no answer.', { where })
    }
  })
}

function runCommand(options: StartChildPodOptions, pod: V1Pod): Promise<ExecCommand> {
  const { command, args } = options.request
  // The check has tried the parts of the kernel already.
  return exec(options, pod, ['/bin/bash', '-c', launchScript({ probes: false }), 'launch', command, ...args])
}

async function openNetwork(options: StartChildPodOptions, pod: V1Pod): Promise<void> {
  const { request, services: ownServices } = options
  const { hosts, onDenied } = request
  const run = (cmd: string[]) => exec(options, pod, cmd)
  if (hosts.length > 0) await openEgressTunnel({ run, hosts, ownServices, onDenied })
}

function asChild(
  options: StartChildPodOptions,
  { pod, hold, run }: { pod: V1Pod; hold: ExecCommand; run: ExecCommand }
): ChildContainer {
  const { limits, request } = options
  const { stdin, stdout, stderr } = run
  const exited = run.ended.then(async () => whyEnded(await run.exitCode, request.command, limits.memoryMb))
  let removed: Promise<void> | undefined
  const end = async () => {
    hold.stdin.end()
    await Promise.race([hold.ended, delay(END_MS, undefined, { ref: false })])
    hold.destroy()
    run.destroy()
    await remove(options, pod)
  }
  const stop = async (graceMs = GRACE_MS) => {
    stdin.end()
    await Promise.race([exited, delay(graceMs, undefined, { ref: false })])
    removed ??= end()
    await removed
  }
  // Without its command the pod is useless. Without its holder it is about to end.
  void exited.then(() => stop(0))
  void hold.ended.then(() => run.destroy())
  return { id: podId(pod), stdin, stdout, stderr, exited, stop }
}

/** A pod that is left ends by itself, because nobody holds it, and is removed by the next sweep. */
async function remove({ api, logger }: StartChildPodOptions, pod: V1Pod): Promise<void> {
  const { name, uid } = splitId(podId(pod))
  await api.deletePod(name, uid).catch((error) => {
    if (!isAppError(error, 'container_gone')) logger.warn({ err: error, name }, `A pod is left: ${messageOf(error)}`)
  })
}
