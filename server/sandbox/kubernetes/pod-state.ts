import type { V1Pod } from '@kubernetes/client-node'
import { AppError } from '../../lib/errors.ts'
import type { ContainerState } from '../port.ts'

/** Names are used again, so a sandbox is known by the name and the unique id of its pod. */
export function podId({ metadata }: Pick<V1Pod, 'metadata'>): string {
  return `${metadata?.name ?? ''}@${metadata?.uid ?? ''}`
}

export function splitId(id: string): { name: string; uid: string } {
  const at = id.lastIndexOf('@')
  return { name: id.slice(0, Math.max(at, 0)), uid: id.slice(at + 1) }
}

/** A pod that the cluster is deleting counts as gone. */
export function isLive({ metadata }: Pick<V1Pod, 'metadata'>): boolean {
  return metadata?.deletionTimestamp === undefined
}

export function isRunning(pod: V1Pod): boolean {
  return isLive(pod) && pod.status?.phase === 'Running'
}

export function stateOf(pod: V1Pod): ContainerState {
  const ended = pod.status?.containerStatuses?.[0]?.state?.terminated
  return {
    running: pod.status?.phase === 'Running',
    paused: false,
    oomKilled: ended?.reason === 'OOMKilled',
    exitCode: ended?.exitCode ?? (pod.status?.phase === 'Failed' ? 137 : 0)
  }
}

const HOPELESS = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'CreateContainerConfigError',
  'CreateContainerError'
])

/** Why the pod will never run; undefined if it may. */
export function whyHopeless(pod: V1Pod): AppError | undefined {
  if (!isLive(pod)) return new AppError('not-found', 'container_gone', 'The pod was deleted while it started.')
  const { phase, reason, message, containerStatuses } = pod.status ?? {}
  if (phase === 'Failed' || phase === 'Succeeded') {
    const why = message ?? reason ?? `exit code ${stateOf(pod).exitCode}`
    return new AppError('unavailable', 'container_not_running', `The pod of a sandbox ended while it started: ${why}`)
  }
  const waiting = containerStatuses?.[0]?.state?.waiting
  if (!HOPELESS.has(waiting?.reason ?? '')) return undefined
  const text = `The cluster can't start the sandbox image (${waiting?.reason}): check KUBERNETES_IMAGE and the pull secrets.`
  return new AppError('unavailable', 'image_missing', text, { where: (waiting?.message ?? '').slice(0, 500) })
}

/** Why the pod has not started yet, as the scheduler says. */
export function whyPending(pod: V1Pod | undefined): AppError {
  const scheduled = pod?.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False') {
    const message = `There is no room in the cluster: ${scheduled.message ?? scheduled.reason ?? 'the pod can not be scheduled'}`
    return new AppError('unavailable', 'cluster_full', message.slice(0, 700))
  }
  return new AppError(
    'timeout',
    'engine_timeout',
    'The pod of a sandbox did not start in time: try again, or ask the operator of this server.'
  )
}
