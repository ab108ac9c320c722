/**
 * Compares the pod that a cluster has admitted with the one that was asked for. Webhooks of a cluster add containers with a network,
 * tokens and variables to all pods of a namespace, and an older cluster drops fields that it does not know.
 */
import type { V1Container, V1Pod, V1PodSpec, V1Volume } from '@kubernetes/client-node'
import { AppError } from '../../lib/errors.ts'

/** The fields that isolate a pod. A cluster may choose the node, the priority, the resources and where the image comes from. */
const POD_FIELDS = [
  ...(['automountServiceAccountToken', 'enableServiceLinks', 'dnsPolicy', 'dnsConfig', 'hostAliases'] as const),
  ...(['runtimeClassName', 'hostUsers', 'securityContext', 'initContainers', 'ephemeralContainers'] as const),
  ...(['hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace', 'resourceClaims'] as const)
] satisfies (keyof V1PodSpec)[]

const CONTAINER_FIELDS = [
  ...(['command', 'args', 'env', 'envFrom', 'securityContext', 'volumeMounts', 'volumeDevices'] as const),
  ...(['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe', 'ports'] as const)
] satisfies (keyof V1Container)[]

/** Throws `pod_changed`. The sizes of limits are read back from inside. */
export function checkAdmitted(asked: V1Pod, admitted: V1Pod): void {
  const changes = changesOf(asked.spec, admitted.spec)
  if (changes.length === 0) return
  const message =
    'The cluster changes the pods of sandboxes, so none is used: its operator must exclude the namespace of the sandboxes from webhooks that change pods, or choose settings that the cluster supports.'
  throw new AppError('unavailable', 'pod_changed', message, { where: `changed: ${changes.join(', ')}`.slice(0, 500) })
}

function changesOf(asked?: V1PodSpec, admitted?: V1PodSpec): string[] {
  if (!asked || !admitted) return ['spec']
  const names = new Set(asked.containers.map(({ name }) => name))
  const added = admitted.containers.filter(({ name }) => !names.has(name))
  return [
    ...POD_FIELDS.filter((field) => !isSame(asked[field], admitted[field])),
    ...(isSame(asked.volumes?.map(kindOf), admitted.volumes?.map(kindOf)) ? [] : ['volumes']),
    ...added.map(({ name }) => `container ${name}`),
    ...asked.containers.flatMap((mine) => {
      const theirs = admitted.containers.find(({ name }) => name === mine.name)
      if (!theirs) return [`container ${mine.name}`]
      return CONTAINER_FIELDS.filter((field) => !isSame(mine[field], theirs[field]))
    })
  ]
}

/** A cluster writes sizes in its own way, so here it counts only that there is one. */
function kindOf({ name, emptyDir, ...others }: V1Volume) {
  return { name, medium: emptyDir?.medium, isLimited: emptyDir?.sizeLimit !== undefined, ...others }
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(plain(one)) === JSON.stringify(plain(other))
}

/** With its keys in order, and without what is empty. A `false` is not empty: it may differ from the default. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(plain)
  if (typeof value !== 'object' || value === null) return value ?? undefined
  const entries = Object.entries(value)
    .map(([key, each]) => [key, plain(each)] as const)
    .filter(([, each]) => each !== undefined)
  return entries.length === 0 ? undefined : Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
