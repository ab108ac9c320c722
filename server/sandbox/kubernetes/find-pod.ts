import { setTimeout as delay } from 'node:timers/promises'
import type { V1Pod } from '@kubernetes/client-node'
import { AppError, isAppError } from '../../lib/errors.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { ClusterApi } from './api/cluster-api.ts'
import { isLive, isRunning, splitId } from './pod-state.ts'

/** A kubelet needs a few seconds to restart. */
const UNREACHABLE_MS = 12_000
const WAIT = { firstMs: 100, maxMs: 2000 }

export async function findPod(api: ClusterApi, containerId: string): Promise<V1Pod | undefined> {
  const { name, uid } = splitId(containerId)
  try {
    const pod = await api.getPod(name)
    return pod.metadata?.uid === uid ? pod : undefined
  } catch (error) {
    if (isAppError(error, 'container_gone')) return undefined
    throw error
  }
}

export async function runningPod(api: ClusterApi, containerId: string): Promise<V1Pod> {
  const pod = await findPod(api, containerId)
  if (!pod || !isLive(pod))
    throw new AppError('not-found', 'container_gone', 'The pod of this sandbox no longer exists.')
  if (!isRunning(pod)) throw new AppError('unavailable', 'container_not_running', 'The pod of this sandbox has ended.')
  return pod
}

interface PodWait {
  api: ClusterApi
  containerId: string
  ms?: number | undefined
  /** Fires when nobody should wait any more. */
  signal?: AbortSignal
}

/**
 * Tries again while the node does not answer. A kubelet that restarts knows none of its pods for some seconds, and they run on
 * meanwhile, so only the API server can say that a pod is gone.
 */
export async function whilePodRuns<T>(
  { api, containerId, ms = UNREACHABLE_MS, signal }: PodWait,
  work: () => Promise<T>
): Promise<T> {
  const until = performance.now() + ms
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!isAppError(error, 'pod_unreachable')) throw error
      await runningPod(api, containerId)
      const wait = backoffMs(attempt, WAIT)
      if (signal?.aborted || performance.now() + wait > until) throw error
      await delay(wait, undefined, { signal }).catch(() => {})
    }
  }
}
