/**
 * MCP servers of the registry in containers of a Docker engine. Owns the containers of this process; knows no protocol. Each is
 * held by one stream (`child-scripts.ts`): when that ends, so does the container; `container-watchdog.ts` sees to those that never
 * came to run. Invariant: whatever fails or is killed, here or in an earlier process, no container is left.
 */
import { randomUUID } from 'node:crypto'
import Dockerode from 'dockerode'
import { AppError, isAppError, messageOf } from '../../../lib/errors.ts'
import type { Logger } from '../../../lib/logger.ts'
import { withDeadline } from '../../../lib/waiting/deadline.ts'
import type { ChildContainer, ChildContainerRequest, ChildContainers } from '../../child-port.ts'
import type { SandboxLimits } from '../../port.ts'
import { CHILD_APP, LABEL } from '../engine/container-spec.ts'
import { watchContainers } from '../engine/container-watchdog.ts'
import { createEngineCall, type EngineCall } from '../engine/engine-call.ts'
import { readEngineStatus } from '../engine/engine-status.ts'
import { removeContainer } from '../engine/remove-container.ts'
import { createImageBuilder, type ImageBuilder } from '../image/image-builder.ts'
import { startChildContainer } from './child-container.ts'

export interface ChildContainersOptions {
  /** Of a container that wishes for nothing else; its network is not heeded. */
  limits: SandboxLimits
  /** The user's own image; undefined is ours. */
  image?: string | undefined
  logger: Logger
  docker?: Dockerode
}

/** Less than a server has to start in: what takes longer goes on and is there for the next try. */
const IMAGE_MS = 25_000
const LIST_MS = 10_000
/** A container that does not run is being started by someone, or was left by a process that was killed just then. */
const LEFTOVER_MS = 60_000

export function createChildContainers(options: ChildContainersOptions): ChildContainers {
  const { logger, docker = new Dockerode() } = options
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
    async start(wish, signal) {
      const limits = limitsOf(options.limits, wish)
      const { runtime } = limits
      const call = createEngineCall(docker, { image: wish.image ?? options.image, runtime })
      // Before the image, whose builder would only say that it can't build.
      await readEngineStatus(docker, call)
      const image = await imageOf(wish.image)
      if (!watched) {
        watched = true
        await watchContainers(docker, instance)
        void sweepLeftovers(docker, call, logger)
      }
      const child = await startChildContainer({ docker, call, limits, image, instance, wish, logger })
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

/** Always without a network of its own, whatever the sessions' sandboxes have. */
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
