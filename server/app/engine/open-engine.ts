/** Opens the engine for sandboxes that SANDBOX_ENGINE names. The client for Kubernetes is large and loaded only if it is used. */
import { hostname } from 'node:os'
import { kubernetesPods } from '../../config/kubernetes-pods.ts'
import { sandboxLimits } from '../../config/sandbox-limits.ts'
import type { Settings } from '../../config/settings.ts'
import type { Logger } from '../../lib/logger.ts'
import { createDockerEngine } from '../../sandbox/docker/docker-engine.ts'
import type { KubernetesEngine } from '../../sandbox/kubernetes/kubernetes-engine.ts'
import type { SandboxEngine } from '../../sandbox/port.ts'
import { servicesNearPods } from './own-services.ts'

/** `isAlone`: this process serves, and shares its store with no other instance. */
export async function openEngine(settings: Settings, logger: Logger, isAlone = false): Promise<SandboxEngine> {
  if (settings.SANDBOX_ENGINE === 'kubernetes') return openKubernetes(settings, logger, isAlone)
  return createDockerEngine({ limits: sandboxLimits(settings), image: settings.SANDBOX_IMAGE, logger })
}

async function openKubernetes(settings: Settings, logger: Logger, isAlone: boolean): Promise<KubernetesEngine> {
  const { KubernetesEngine: Engine } = await import('../../sandbox/kubernetes/kubernetes-engine.ts')
  return new Engine({
    ...clusterOptions(settings),
    alone: isAlone ? `${hostname()}:${settings.PORT}` : undefined,
    spares: settings.KUBERNETES_SPARE_PODS,
    logger
  })
}

/** The options that pods for sessions and pods for servers have in common. */
export function clusterOptions(settings: Settings) {
  return {
    cluster: {
      kubeconfig: settings.KUBECONFIG,
      isFound: settings.kubeconfigIsFound,
      context: settings.KUBERNETES_CONTEXT,
      namespace: settings.KUBERNETES_NAMESPACE
    },
    limits: sandboxLimits(settings),
    pods: kubernetesPods(settings),
    startMs: settings.KUBERNETES_START_SECONDS * 1000,
    checksNetwork: settings.KUBERNETES_NETWORK_CHECK === 'on',
    closedTargets: settings.KUBERNETES_CLOSED_TARGETS,
    ownServices: servicesNearPods(settings)
  }
}
