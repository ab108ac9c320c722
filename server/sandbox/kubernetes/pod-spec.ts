import { createHash } from 'node:crypto'
import type { V1Pod, V1PodSpec, V1Toleration } from '@kubernetes/client-node'
import { INSIDE } from '../../../workspace-server/protocol.ts'
import type { SandboxLimits } from '../port.ts'
import { CONTAINER } from './api/cluster-api.ts'

export const LABEL = {
  app: 'mcp-orchestrator.app',
  deployment: 'mcp-orchestrator.deployment',
  instance: 'mcp-orchestrator.instance',
  spec: 'mcp-orchestrator.spec',
  state: 'mcp-orchestrator.state',
  /** The name of a child server. */
  server: 'mcp-orchestrator.server',
  /** A random value that identifies the attempt that created or took this pod. */
  claim: 'mcp-orchestrator.claim'
} as const
export const APP = 'sandbox'
/** A spare pod belongs to no instance yet. */
export const STATE = { spare: 'spare', used: 'used' } as const

/** Every sandbox is a member of this group; see `container-spec.ts` of Docker. */
const SHARED_GROUP = 10_001
/** How long a pod lives after its deployment is gone for good. */
const IDLE_SECONDS = 1800
/** The last resort: the cluster ends a pod of this age. */
const MAX_AGE_SECONDS = 86_400
const TMP_MB = 64
/** After this time on a node that does not answer, the cluster gives the pod up, and the session gets another one. */
const NODE_LOST_SECONDS = 30
const LOST_NODE: V1Toleration[] = ['not-ready', 'unreachable'].map((key) => ({
  key: `node.kubernetes.io/${key}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: NODE_LOST_SECONDS
}))

/** Without it, a cluster autoscaler never removes the node of a pod that has no controller. The files are saved after every call. */
const EVICTABLE = { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true' }

/** The choices of an administrator about pods. */
export interface PodOptions {
  image: string
  pullSecrets?: string[] | undefined
  nodeSelector?: Record<string, string> | undefined
  tolerations?: V1Toleration[] | undefined
  priorityClass?: string | undefined
  /** False: pods have their own user namespace. */
  hostUsers?: boolean | undefined
  /** A profile on the nodes, in place of the runtime's own. */
  seccompProfile?: string | undefined
}

export interface PodInput {
  name: string
  /** No other pod of the namespace has this user id. */
  uid: number
  limits: SandboxLimits
  options: PodOptions
  labels: Record<string, string>
  /** How long the pod lives without a sign of life. */
  idleSeconds?: number | undefined
}

/** A pod that passes the restricted Pod Security Standard. It is the same for every session. */
export function podOf({ name, uid, limits, options, labels, idleSeconds = IDLE_SECONDS }: PodInput): V1Pod {
  const spec = podSpec(limits, options, uid, idleSeconds)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: { [LABEL.app]: APP, [LABEL.spec]: specHash(limits, options), ...labels },
      annotations: EVICTABLE
    },
    spec
  }
}

/** Pods that differ only in their user have the same hash. */
export function specHash(limits: SandboxLimits, options: PodOptions): string {
  return createHash('sha256')
    .update(JSON.stringify(podSpec(limits, options, 0, IDLE_SECONDS)))
    .digest('hex')
    .slice(0, 16)
}

function podSpec(limits: SandboxLimits, options: PodOptions, uid: number, idleSeconds: number): V1PodSpec {
  const { pullSecrets = [], nodeSelector, tolerations = [], priorityClass, hostUsers, seccompProfile } = options
  return {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    hostname: 'sandbox',
    // No name server: a name can't be looked up even if the network leaks.
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['127.0.0.1'] },
    terminationGracePeriodSeconds: 1,
    activeDeadlineSeconds: MAX_AGE_SECONDS,
    ...(hostUsers === undefined ? {} : { hostUsers }),
    ...(limits.runtime === undefined ? {} : { runtimeClassName: limits.runtime }),
    ...(priorityClass === undefined ? {} : { priorityClassName: priorityClass }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    tolerations: [...LOST_NODE, ...tolerations],
    imagePullSecrets: pullSecrets.map((name) => ({ name })),
    securityContext: {
      runAsNonRoot: true,
      ...{ runAsUser: uid, runAsGroup: uid, fsGroup: uid, supplementalGroups: [SHARED_GROUP] },
      seccompProfile:
        seccompProfile === undefined
          ? { type: 'RuntimeDefault' }
          : { type: 'Localhost', localhostProfile: seccompProfile },
      // No group may open ping sockets.
      ...(isGvisor(limits) ? {} : { sysctls: [{ name: 'net.ipv4.ping_group_range', value: '1 0' }] })
    },
    containers: [container(limits, options.image, idleSeconds)],
    volumes: [
      { name: 'workspace', emptyDir: { medium: 'Memory', sizeLimit: `${limits.workspaceMb}Mi` } },
      { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: `${TMP_MB}Mi` } },
      { name: 'state', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }
    ]
  }
}

function container(limits: SandboxLimits, image: string, idleSeconds: number): V1PodSpec['containers'][number] {
  // Requests and limits are the same, so that the pod's quality of service is guaranteed.
  const resources = { cpu: String(limits.cpus), memory: `${limits.memoryMb}Mi`, 'ephemeral-storage': '64Mi' }
  return {
    name: CONTAINER,
    image,
    imagePullPolicy: 'IfNotPresent',
    command: [INSIDE.idle],
    args: [String(idleSeconds)],
    workingDir: INSIDE.root,
    resources: { requests: resources, limits: resources },
    securityContext: {
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] }
    },
    volumeMounts: [
      { name: 'workspace', mountPath: INSIDE.root },
      { name: 'tmp', mountPath: '/tmp' },
      { name: 'state', mountPath: INSIDE.state }
    ]
  }
}

export function isGvisor({ runtime }: SandboxLimits): boolean {
  return /runsc|gvisor/.test(runtime ?? '')
}

/**
 * The command that starts a server in a pod. A pod can't set a limit on processes or open files, so the server's own shell does, and the
 * addresses of the cluster are taken out of its environment.
 */
export function limitedCommand(limits: SandboxLimits, cmd: string[]): string[] {
  const blocks = Math.max(limits.workspaceMb, TMP_MB) * 1024
  const ulimits = `ulimit -c 0; ulimit -n 4096; ulimit -u ${limits.pids}; ulimit -f ${blocks}`
  // With `set -e`, a limit that can't be set ends the command.
  return ['/bin/bash', '-c', `set -e; ${ulimits}; unset "\${!KUBERNETES_@}"; exec "$@"`, 'server', ...cmd]
}
