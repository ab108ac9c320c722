/**
 * Sandboxes on a Docker engine. Owns the containers and the connections into them. Does not know about sessions; the image
 * builder provides the image. Invariant: every call to the engine has a deadline, and a failed create leaves no container behind.
 */
import Dockerode from 'dockerode'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ContainerSummary, SandboxEngine, SandboxLimits, WorkspaceConnection } from '../port.ts'
import { checkLimits, type EngineLimits } from '../workspace/limits-check.ts'
import { openConnection } from '../workspace/open-connection.ts'
import { APP, containerSpec, isRunsc, LABEL } from './engine/container-spec.ts'
import { inspectContainer, unpauseContainer } from './engine/container-state.ts'
import { startContainer } from './engine/create-container.ts'
import { createEngineCall, type EngineCall } from './engine/engine-call.ts'
import { readEngineStatus } from './engine/engine-status.ts'
import { removeContainer } from './engine/remove-container.ts'
import { serverStarter } from './engine/start-server.ts'
import { createImageBuilder, type ImageBuilder } from './image/image-builder.ts'

const QUICK_MS = 10_000
const MAX_REMEMBERED = 1000
const SLOW_MS = 30_000

export interface DockerEngineOptions {
  limits: SandboxLimits
  /** The user's own image; defaults to ours. */
  image?: string | undefined
  logger: Logger
  /** Defaults to the engine that DOCKER_HOST and related variables point to. */
  docker?: Dockerode
  /** Defaults to the builder of this project's image. */
  images?: ImageBuilder
}

/** It can pause. */
export type DockerEngine = SandboxEngine & Required<Pick<SandboxEngine, 'pause' | 'unpause'>>

export function createDockerEngine(options: DockerEngineOptions): DockerEngine {
  const { limits, logger, docker = new Dockerode() } = options
  const images = options.images ?? createImageBuilder(docker, { image: options.image, uids: limits.uids, logger })
  const image = sandboxImage(images)
  const context = { image: options.image ?? 'of this project', runtime: limits.runtime, network: limits.network }
  const call = createEngineCall(docker, context)
  const connections = new Set<WorkspaceConnection>()
  /** Containers that we have begun to remove. */
  const removed = new BoundedMap<string, true>(MAX_REMEMBERED)
  const gvisor = isRunsc(limits)

  return {
    status: () => readEngineStatus(docker, call),
    hasImage: () => call({ to: 'look for the sandbox image', ms: SLOW_MS }, () => images.exists()),

    ensureImage: image.ensure,
    waitForBuild: image.waitForBuild,

    async create(owner) {
      const fixed = { limits, owner, image: await image.name(), createdAt: Date.now() }
      return startContainer({ docker, call, uids: limits.uids, logger }, (uid) => containerSpec({ ...fixed, uid }))
    },

    async connect(containerId, epoch, { resume = false } = {}) {
      const isEnding = () => removed.has(containerId)
      const start = serverStarter(docker, call, containerId)
      const connection = await openConnection({ start, logger, containerId, epoch, resume, gvisor, isEnding })
      connections.add(connection)
      void connection.closed.then(() => connections.delete(connection))
      return connection
    },

    inspect: (containerId) => inspectContainer(docker, call, containerId),

    async pause(containerId) {
      await call({ to: 'pause a container', ms: QUICK_MS }, (abortSignal) =>
        docker.getContainer(containerId).pause({ abortSignal })
      ).catch((error) => {
        if (!isAppError(error, 'container_paused')) throw error
      })
    },

    unpause: (containerId) => unpauseContainer(docker, call, containerId),

    async remove(containerId) {
      removed.set(containerId, true)
      // Killing a paused gVisor container takes the full 10 seconds.
      if (gvisor) await unpauseContainer(docker, call, containerId).catch(() => {})
      return removeContainer(docker, call, containerId)
    },

    async list(deployment, instance) {
      const all = await listContainers(docker, call, deployment)
      return instance === undefined ? all : all.filter((each) => each.instance === instance)
    },

    async verifyLimits(connection) {
      const seen = await connection.limits()
      const container = docker.getContainer(connection.containerId)
      const look = { to: 'inspect a container', ms: QUICK_MS }
      const found = gvisor ? await call(look, (abortSignal) => container.inspect({ abortSignal })) : undefined
      checkLimits(limits, seen, { engine: found && engineLimits(found.HostConfig) })
      return seen
    },

    async close() {
      await Promise.all([...connections].map((connection) => connection.close()))
    }
  }
}

/** Computes the name once, because the builder reads and hashes files for it; there is none while the image is being built. */
function sandboxImage(
  images: ImageBuilder
): Pick<ImageBuilder, 'ensure' | 'name'> & Pick<SandboxEngine, 'waitForBuild'> {
  let name: string | undefined
  const builds = new Set<Promise<string>>()
  let isBuilding = false
  return {
    async ensure(onProgress) {
      const build = images.ensure((line) => {
        isBuilding = true
        onProgress?.(line)
      })
      builds.add(build)
      try {
        name = await build
        return name
      } finally {
        builds.delete(build)
        isBuilding = false
      }
    },
    async waitForBuild() {
      const isUnderWay = builds.size > 0
      await Promise.allSettled(builds)
      return isUnderWay
    },
    async name() {
      if (isBuilding)
        throw new AppError('unavailable', 'image_missing', 'The sandbox image is being built. Try again in a minute.')
      name ??= await images.name()
      return name
    }
  }
}

function engineLimits({ Memory, PidsLimit, NanoCpus, SecurityOpt }: Dockerode.HostConfig): EngineLimits {
  const noNewPrivileges = SecurityOpt?.includes('no-new-privileges')
  return { memoryBytes: Memory, pids: PidsLimit, cpus: NanoCpus ? NanoCpus / 1e9 : undefined, noNewPrivileges }
}

async function listContainers(docker: Dockerode, call: EngineCall, deployment: string): Promise<ContainerSummary[]> {
  const filters = { label: [`${LABEL.app}=${APP}`, `${LABEL.deployment}=${deployment}`] }
  const containers = await call({ to: 'list containers', ms: QUICK_MS }, (abortSignal) =>
    docker.listContainers({ all: true, filters, abortSignal })
  )
  return containers.map(({ Id, Labels, Created }) => ({
    id: Id,
    instance: Labels[LABEL.instance] ?? '',
    createdAt: Number(Labels[LABEL.created]) || Created * 1000
  }))
}
