/**
 * Containers for child servers, and for the programs of clients and models. Loaded when the first one is needed, because the engine's
 * client is large.
 */
import type { ReserveRealm } from '../../code/realms/realm-queue.ts'
import { sandboxLimits } from '../../config/sandbox-limits.ts'
import type { Settings } from '../../config/settings.ts'
import type { Logger } from '../../lib/logger.ts'
import { clusterOptions } from '../engine/open-engine.ts'
import { servicesNearContainers } from '../engine/own-services.ts'

type Environment = Record<string, string | undefined>

export async function openContainers(settings: Settings, logger: Logger, { DOCKER_HOST }: Environment) {
  if (settings.SANDBOX_ENGINE === 'kubernetes') {
    const { createChildPods } = await import('../../sandbox/kubernetes/child-pods.ts')
    return createChildPods({ ...clusterOptions(settings), logger })
  }
  const { createChildContainers } = await import('../../sandbox/docker/servers/child-containers.ts')
  const ownServices = servicesNearContainers(settings, DOCKER_HOST)
  return createChildContainers({ limits: sandboxLimits(settings), image: settings.SANDBOX_IMAGE, ownServices, logger })
}

/**
 * The engine is contacted when the first program starts. `reserve` gives places among the sandboxes of sessions; without it, this process
 * has places of its own.
 */
export async function openRealms(
  settings: Settings,
  logger: Logger,
  environment: Environment,
  reserve: ReserveRealm | undefined
) {
  const [{ WarmRealms }, { localPlaces }] = await Promise.all([
    import('../../code/realms/warm-realms.ts'),
    import('../../code/realms/realm-queue.ts')
  ])
  const places = reserve ?? localPlaces(Math.min(settings.MAX_SESSIONS, settings.MAX_SANDBOXES_PER_OWNER))
  return new WarmRealms(() => openContainers(settings, logger, environment), places, logger)
}
