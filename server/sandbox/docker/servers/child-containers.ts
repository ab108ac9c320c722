/**
 * Runs MCP servers of the registry in containers of a Docker engine. Owns the containers of this process; does not know the
 * protocol. One stream holds each container (`child-scripts.ts`): when the stream ends, the container ends.
 * `container-watchdog.ts` removes containers that were never started. Invariant: no container is left behind, whatever fails or
 * is killed, in this process or an earlier one.
 */
import { randomUUID } from 'node:crypto'
import Dockerode from 'dockerode'
import { AppError, isAppError, messageOf } from '../../../lib/errors.ts'
import type { Logger } from '../../../lib/logger.ts'
import { withDeadline } from '../../../lib/waiting/deadline.ts'
import type { ChildContainer, ChildContainerRequest, ChildContainers } from '../../child-port.ts'
import type { OwnService } from '../../egress/own-ports.ts'
import type { SandboxLimits } from '../../port.ts'
import { CHILD_APP, LABEL } from '../engine/container-spec.ts'
import { watchContainers } from '../engine/container-watchdog.ts'
import { createEngineCall, type EngineCall } from '../engine/engine-call.ts'
import { readEngineStatus } from '../engine/engine-status.ts'
import { removeContainer } from '../engine/remove-container.ts'
import { createImageBuilder, type ImageBuilder } from '../image/image-builder.ts'
import { startChildContainer } from './child-container.ts'

export interface ChildContainersOptions {
  /** The limits for a container that requests no others. Its network is ignored. */
  limits: SandboxLimits
  /** The user's own image; defaults to ours. */
  image?: string | undefined
  /** The store and the engine, which no server may reach. */
  ownServices?: OwnService[]
  logger: Logger
  docker?: Dockerode
}

/** Less than the time that a server has to start. A build that takes longer continues and is ready for the next try. */
const IMAGE_MS = 25_000
const LIST_MS = 10_000
/** A container that is not running is either being started, or was left behind by a process that was killed while starting it. */
const LEFTOVER_MS = 60_000

export function createChildContainers(options: ChildContainersOptions): ChildContainers {
  const { logger, ownServices = [], docker = new Dockerode() } = options
  const instance = randomUUID()
  const live = new Set<ChildContainer>()
  const builders = new Map<string | undefined, ImageBuilder>()
  let stopping = false
  let watched = false

  const imageOf = (image: string | undefined) => {
    const own = image ?? options.image
    const builder = builders.get(own) ?? createImageBuilder(docker, { image: own, uids: options.limits.uids, logger })
    builders.set(own, builder)
    return readyImage(builder, own)
  }

  return {
    async start(request, signal) {
      const limits = limitsOf(options.limits, request)
      const { runtime } = limits
      const call = createEngineCall(docker, { image: request.image ?? options.image, runtime })
      // Check the engine first: without it, the image builder would only say that it can't build.
      await readEngineStatus(docker, call)
      const image = await imageOf(request.image)
      if (!watched) {
        watched = true
        await watchContainers(docker, instance)
        void sweepLeftovers(docker, call, logger)
      }
      const child = await startChildContainer({ docker, call, limits, image, instance, ownServices, request, logger })
      live.add(child)
      void child.exited.then(() => live.delete(child))
      if (!stopping && !signal.aborted) return child
      await child.stop(0)
      throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping, or the start took too long.')
    },

    async stopAll() {
      stopping = true
      await Promise.all([...live].map((child) => child.stop()))
    }
  }
}

/** A child has no network of its own, whatever the session sandboxes have. */
function limitsOf(limits: SandboxLimits, { memoryMb, cpus }: ChildContainerRequest): SandboxLimits {
  return { ...limits, network: 'none', ...(memoryMb ? { memoryMb } : {}), ...(cpus ? { cpus } : {}) }
}

async function readyImage(builder: ImageBuilder, own: string | undefined): Promise<string> {
  try {
    return await withDeadline({ what: 'the image', ms: IMAGE_MS, code: 'image_not_ready' }, () => builder.ensure())
  } catch (error) {
    if (!isAppError(error, 'image_not_ready')) throw error
    const which = own === undefined ? 'the sandbox image' : `the image ${own}`
    const make = own === undefined ? 'npm run setup' : `SANDBOX_IMAGE=${own} npm run setup`
    const message = `${which} is still being made: try again in a minute, or run \`${make}\` beforehand`
    throw new AppError('unavailable', 'image_not_ready', message, { cause: error })
  }
}

async function sweepLeftovers(docker: Dockerode, call: EngineCall, logger: Logger): Promise<void> {
  try {
    const filters = { label: [`${LABEL.app}=${CHILD_APP}`], status: ['created', 'exited', 'dead'] }
    const found = await call({ to: 'list containers', ms: LIST_MS }, (abortSignal) =>
      docker.listContainers({ all: true, filters, abortSignal })
    )
    const old = found.filter(({ Labels }) => Date.now() - Number(Labels[LABEL.created]) > LEFTOVER_MS)
    await Promise.all(old.map(({ Id }) => removeContainer(docker, call, Id)))
  } catch (error) {
    logger.warn({ err: error }, `Leftover containers could not be removed: ${messageOf(error)}`)
  }
}
