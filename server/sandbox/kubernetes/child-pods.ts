/**
 * Runs MCP servers of the registry, and programs, in pods of a cluster. Owns the pods of this process; does not know the protocol. One
 * stream holds each pod (`child-pod.ts`): when it ends, everything in the pod ends. Invariants: nothing runs in a pod before its limits
 * and its closed network were tested from inside, and no pod runs on without its process.
 */
import { randomUUID } from 'node:crypto'
import { AppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ChildContainer, ChildContainerRequest, ChildContainers } from '../child-port.ts'
import type { OwnService } from '../egress/own-ports.ts'
import type { SandboxLimits } from '../port.ts'
import { ClusterApi } from './api/cluster-api.ts'
import { type ClusterOptions, loadKubeConfig } from './api/kube-config.ts'
import { startChildPod } from './child-pod.ts'
import { removeLeftovers } from './leftover-pods.ts'
import { CommonTargets } from './network-check.ts'
import type { PodOptions } from './pod-spec.ts'

const START_MS = 120_000

export interface ChildPodsOptions {
  cluster: ClusterOptions
  /** The limits for a pod that requests no others. */
  limits: SandboxLimits
  pods: PodOptions
  startMs?: number
  checksNetwork?: boolean
  closedTargets?: string[] | undefined
  /** The services that no server may reach: not by itself, and not through its proxy. */
  ownServices?: OwnService[]
  logger: Logger
}

export function createChildPods(options: ChildPodsOptions): ChildContainers {
  const { logger, startMs = START_MS, checksNetwork = true, ownServices = [], closedTargets: more } = options
  const { config, namespace, isInside } = loadKubeConfig(options.cluster)
  const api = new ClusterApi(config, namespace)
  const targets = new CommonTargets({ api: api.address, isInside, more, own: ownServices })
  const instance = randomUUID()
  const live = new Set<ChildContainer>()
  const starting = new Set<Promise<unknown>>()
  const stopping = new AbortController()
  let hasSwept = false

  return {
    async start(request, signal) {
      const start = starts(request, signal)
      const settled = start.catch(() => {}).finally(() => starting.delete(settled))
      starting.add(settled)
      return start
    },

    async stopAll() {
      stopping.abort(stopped())
      await Promise.all([...live].map((child) => child.stop()))
      await Promise.all(starting)
    }
  }

  async function starts(request: ChildContainerRequest, given: AbortSignal): Promise<ChildContainer> {
    refuseFolders(request)
    if (!hasSwept) {
      hasSwept = true
      removeLeftovers(api).catch((error) => {
        logger.warn({ err: error }, `Leftover pods could not be removed: ${messageOf(error)}`)
      })
    }
    const limits = limitsOf(options.limits, request)
    const pods = { ...options.pods, ...(request.image ? { image: request.image } : {}) }
    const closed = checksNetwork ? targets : undefined
    const services = [...ownServices, apiService(api)]
    const signal = AbortSignal.any([given, stopping.signal])
    const child = await startChildPod({
      api,
      limits,
      pods,
      startMs,
      instance,
      closed,
      services,
      request,
      logger,
      signal
    })
    live.add(child)
    void child.exited.then(() => live.delete(child))
    if (!signal.aborted) return child
    await child.stop(0)
    throw stopped()
  }
}

function stopped(): AppError {
  return new AppError('unavailable', 'shutting_down', 'The gateway is stopping, or the start took too long.')
}

function limitsOf(limits: SandboxLimits, { memoryMb, cpus }: ChildContainerRequest): SandboxLimits {
  return { ...limits, network: 'none', ...(memoryMb ? { memoryMb } : {}), ...(cpus ? { cpus } : {}) }
}

function apiService({ address }: ClusterApi): OwnService {
  const { hostname, port, protocol } = new URL(address)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) }
}

function refuseFolders({ server, folders, cwd }: ChildContainerRequest): void {
  if (folders.length === 0 && cwd === undefined) return
  const message = `The server "${server}" can't be started: a pod has no folders of this machine. Remove "folders" and "cwd" from its entry, and put its files into an image.`
  throw new AppError('invalid', 'server_not_startable', message, { details: { permanent: true } })
}
