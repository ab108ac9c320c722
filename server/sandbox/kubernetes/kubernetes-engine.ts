/**
 * Sandboxes on a Kubernetes cluster: one plain pod each, in one namespace. Owns the pods and the streams into them. Does not know about
 * sessions. Invariant: every call to the API has a deadline, a failed create leaves no pod behind, and a sandbox that reaches the
 * network is not used.
 */
import type { LimitsResult, ReachTarget } from '../../../workspace-server/protocol.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { shuttingDown } from '../../lib/waiting/shutting-down.ts'
import type {
  ContainerState,
  ContainerSummary,
  EngineStatus,
  SandboxEngine,
  SandboxLimits,
  SandboxOwner,
  WorkspaceConnection
} from '../port.ts'
import { openConnection, type StartServer } from '../workspace/open-connection.ts'
import { connectionLost } from '../workspace/stream-transport.ts'
import { isNodeSilent, podUnreachable, statusOf } from './api/api-error.ts'
import { ClusterApi } from './api/cluster-api.ts'
import { type ClusterOptions, loadKubeConfig } from './api/kube-config.ts'
import { type CreatePodOptions, startPod } from './create-pod.ts'
import { findPod, runningPod, whilePodRuns } from './find-pod.ts'
import { removeLeftovers } from './leftover-pods.ts'
import { NamespaceLease } from './namespace-lease.ts'
import { CommonTargets, checkClosed, checkStillClosed, nodeTargets } from './network-check.ts'
import { checkPodLimits } from './pod-limits.ts'
import { APP, isGvisor, LABEL, limitedCommand, type PodOptions, STATE } from './pod-spec.ts'
import { isLive, isRunning, podId, splitId, stateOf } from './pod-state.ts'
import { SparePods } from './spare-pods.ts'

const START_MS = 120_000
const MAX_REMEMBERED = 1000
/** Probes ask for the status every few seconds. */
const COUNTED_MS = 60_000
/** Every running call asks whether its server is alive. */
const ALIVE_MS = 10_000
const CONFLICT = 409

export interface KubernetesEngineOptions {
  cluster: ClusterOptions
  limits: SandboxLimits
  pods: PodOptions
  logger: Logger
  /** Spare pods that all instances share. */
  spares?: number
  /** For an instance that shares no store with others: a name that it keeps over a restart. It needs the namespace for itself. */
  alone?: string | undefined
  startMs?: number
  /** How long a node may not answer while it opens a stream into a pod that runs. */
  unreachableMs?: number
  /** False: a sandbox that reaches the network is used. */
  checksNetwork?: boolean
  /** More addresses that a sandbox must not reach, as `host:port`. */
  closedTargets?: string[] | undefined
  /** Services that we use or offer ourselves. A sandbox must not reach them either. */
  ownServices?: { host: string; port: number }[] | undefined
}

export class KubernetesEngine implements SandboxEngine {
  readonly isShared = true
  readonly api: ClusterApi
  readonly #options: KubernetesEngineOptions
  readonly #creating: CreatePodOptions
  readonly #spares: SparePods
  readonly #connections = new Map<WorkspaceConnection, ReachTarget[]>()
  /** Pods that we have begun to remove. */
  readonly #removed = new BoundedMap<string, true>(MAX_REMEMBERED)
  readonly #targets: CommonTargets
  readonly #lease: NamespaceLease | undefined
  readonly #stopping = new AbortController()
  #counted: { pods: number; at: number } | undefined

  constructor(options: KubernetesEngineOptions) {
    const { limits, logger, pods, startMs = START_MS, spares = 0 } = options
    const { config, namespace, isInside } = loadKubeConfig(options.cluster)
    this.#options = options
    this.api = new ClusterApi(config, namespace)
    const { closedTargets: more, ownServices: own } = options
    this.#targets = new CommonTargets({ api: this.api.address, isInside, more, own })
    this.#creating = { api: this.api, limits, pods, startMs, logger, signal: this.#stopping.signal }
    this.#lease =
      options.alone === undefined ? undefined : new NamespaceLease({ api: this.api, holder: options.alone, logger })
    this.#spares = new SparePods(this.#creating, spares)
  }

  async status(): Promise<EngineStatus> {
    const [version, containers] = await Promise.all([this.api.version(), this.#count()])
    return { name: 'Kubernetes', version, runtimes: [], cgroupVersion: '', containers, remapsUsers: false }
  }

  async #count(): Promise<number> {
    if (this.#counted && performance.now() - this.#counted.at < COUNTED_MS) return this.#counted.pods
    const { length: pods } = await this.api.listMetadata(`${LABEL.app}=${APP}`)
    this.#counted = { pods, at: performance.now() }
    return pods
  }

  async hasImage(): Promise<boolean> {
    return this.#lease?.isHeld ?? true
  }

  /** The nodes pull it; a cluster builds no images. Without the namespace for itself, an instance is not ready. */
  async ensureImage(): Promise<string> {
    await this.#lease?.take()
    return this.#options.pods.image
  }

  async waitForBuild(): Promise<boolean> {
    return false
  }

  async create({ deployment, instance }: SandboxOwner): Promise<string> {
    await this.#lease?.take()
    const taken = await this.#spares.take({ deployment, instance })
    const labels = { [LABEL.deployment]: deployment, [LABEL.instance]: instance, [LABEL.state]: STATE.used }
    const pod = taken ?? (await startPod(this.#creating, labels))
    this.#spares.fill(deployment)
    return podId(pod)
  }

  async connect(containerId: string, epoch: number, { resume = false } = {}): Promise<WorkspaceConnection> {
    const { limits, logger, checksNetwork = true, unreachableMs } = this.#options
    const pod = await runningPod(this.api, containerId)
    // Found before the stream is opened, so that nothing is left open if they can't be.
    const closed = checksNetwork ? [...nodeTargets(pod.status), ...(await this.#targets.get())] : []
    const start = serverStarter(this.api, limits, containerId)
    const isEnding = () => this.#removed.has(containerId)
    const gvisor = isGvisor(limits)
    const opened = await whilePodRuns(
      { api: this.api, containerId, ms: unreachableMs, signal: this.#stopping.signal },
      () => openConnection({ start, logger, containerId, epoch, resume, gvisor, isEnding })
    )
    const connection = checkedAtClaim(opened, closed)
    this.#connections.set(connection, closed)
    void connection.closed.then(() => this.#connections.delete(connection))
    return connection
  }

  async inspect(containerId: string): Promise<ContainerState | null> {
    const pod = await findPod(this.api, containerId)
    return pod && isLive(pod) ? stateOf(pod) : null
  }

  async remove(containerId: string): Promise<boolean> {
    this.#removed.set(containerId, true)
    const mine = [...this.#connections.keys()].filter((each) => each.containerId === containerId)
    const isRemoved = await removePod(this.api, containerId)
    // A node that is lost never closes its streams.
    await Promise.all(mine.map((connection) => connection.close()))
    return isRemoved
  }

  async list(deployment: string, instance?: string): Promise<ContainerSummary[]> {
    const selector = `${LABEL.app}=${APP},${LABEL.deployment}=${deployment},${LABEL.state}=${STATE.used}`
    const mine = instance === undefined ? '' : `,${LABEL.instance}=${instance}`
    return (await this.api.listMetadata(selector + mine)).filter(isLive).map((pod) => ({
      id: podId(pod),
      instance: pod.metadata?.labels?.[LABEL.instance] ?? '',
      createdAt: pod.metadata?.creationTimestamp?.getTime() ?? 0
    }))
  }

  async sweep(deployment: string): Promise<void> {
    // Spare pods end when nobody takes them, so they must be made again also while nobody asks.
    this.#spares.fill(deployment)
    await removeLeftovers(this.api)
  }

  async verifyLimits(connection: WorkspaceConnection): Promise<LimitsResult> {
    const { limits, pods } = this.#options
    const seen = await connection.limits()
    checkPodLimits(limits, pods, seen)
    const closed = this.#connections.get(connection)
    // Without its targets, nothing would be checked.
    if (closed === undefined) throw connectionLost(undefined, false)
    await checkClosed(connection, closed)
    return seen
  }

  stopStarting(): void {
    this.#stopping.abort(shuttingDown())
  }

  async close(): Promise<void> {
    this.stopStarting()
    const { logger } = this.#options
    await Promise.all([
      // No more pods are created, so the next instance may begin.
      this.#lease?.release().catch((error) => logger.warn({ err: error }, messageOf(error))),
      this.#spares.stop(),
      ...[...this.#connections.keys()].map((connection) => connection.close())
    ])
  }
}

/** A warm sandbox was closed when it was created. It must still be when a session gets it. */
function checkedAtClaim(connection: WorkspaceConnection, targets: ReachTarget[]): WorkspaceConnection {
  const claim = async (epoch: number) => {
    await Promise.all([connection.claim(epoch), targets.length > 0 && checkStillClosed(connection, targets)])
  }
  return Object.create(connection, { claim: { value: claim, enumerable: true } })
}

async function removePod(api: ClusterApi, containerId: string): Promise<boolean> {
  const pod = await findPod(api, containerId)
  // A pod that is being deleted could be deleted again, with the same answer.
  if (!pod || !isLive(pod)) return false
  const { name, uid } = splitId(containerId)
  try {
    await api.deletePod(name, uid)
    return true
  } catch (error) {
    // With another uid, the name belongs to another pod by now.
    if (isAppError(error, 'container_gone') || statusOf(error) === CONFLICT) return false
    throw error
  }
}

function serverStarter(api: ClusterApi, limits: SandboxLimits, containerId: string): StartServer {
  let lookedAt = 0
  let wasRunning = true
  return async (cmd) => {
    const stream = await api.exec(splitId(containerId).name, limitedCommand(limits, cmd))
    return {
      stream,
      demux: stream.demux,
      async exitCode() {
        const code = await stream.exitCode
        const { failure } = stream
        // A server that ended would have an exit code.
        if (code === null && (failure === undefined || isNodeSilent(failure)))
          throw podUnreachable(failure ?? 'the stream ended without a word')
        return code
      },
      async isRunning() {
        if (performance.now() - lookedAt < ALIVE_MS) return wasRunning
        const pod = await findPod(api, containerId)
        wasRunning = pod !== undefined && isRunning(pod)
        lookedAt = performance.now()
        return wasRunning
      }
    }
  }
}
