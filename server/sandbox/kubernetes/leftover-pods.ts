/**
 * Removes pods that nobody else will: those that a killed process left while they waited for a node, those of a deployment that is
 * gone, and spare pods of an earlier version, which have ended. Each still holds its name, and with it a user id. Any instance may do
 * this for all of the namespace.
 */
import type { V1Pod } from '@kubernetes/client-node'
import { isAppError } from '../../lib/errors.ts'
import { statusOf } from './api/api-error.ts'
import type { ClusterApi } from './api/cluster-api.ts'
import { LABEL } from './pod-spec.ts'
import { isLive } from './pod-state.ts'

/** After this time, the instance that used the pod has seen how it ended. */
const ENDED_MS = 600_000
/** Longer than anyone waits for a pod to start (KUBERNETES_START_SECONDS). */
const WAITING_MS = 7_200_000
const AT_ONCE = 10
const CONFLICT = 409

export async function removeLeftovers(api: ClusterApi, now = Date.now()): Promise<void> {
  const left = (await api.listPods(LABEL.app, 'status.phase!=Running')).filter((pod) => isLeftover(pod, now))
  for (let at = 0; at < left.length; at += AT_ONCE) {
    await Promise.all(
      left.slice(at, at + AT_ONCE).map(({ metadata }) =>
        api.deletePod(metadata?.name ?? '', metadata?.uid ?? '').catch((error) => {
          if (!isAppError(error, 'container_gone') && statusOf(error) !== CONFLICT) throw error
        })
      )
    )
  }
}

function isLeftover(pod: V1Pod, now: number): boolean {
  const phase = pod.status?.phase ?? ''
  const created = pod.metadata?.creationTimestamp?.getTime() ?? now
  if (!isLive(pod)) return false
  if (phase === 'Pending') return now - created > WAITING_MS
  const ended = pod.status?.containerStatuses?.[0]?.state?.terminated?.finishedAt?.getTime() ?? created
  return ['Succeeded', 'Failed'].includes(phase) && now - ended > ENDED_MS
}
