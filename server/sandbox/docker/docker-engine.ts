/**
 * Sandboxes on a Docker engine. Owns containers and the connections into them; knows nothing of sessions, and its image comes
 * from the image builder. Invariant: every call to the engine has a deadline, and a failed create leaves no container behind.
 */
import { randomUUID } from 'node:crypto'
import Dockerode from 'dockerode'
import { isAppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { ContainerSummary, SandboxEngine, SandboxLimits, SandboxOwner } from '../port.ts'
import { APP, containerSpec, LABEL } from './container-spec.ts'
import { inspectContainer } from './container-state.ts'
import type { DockerWorkspaceConnection } from './docker-workspace-connection.ts'
import { createEngineCall, type EngineCall } from './engine-call.ts'
import { neverReached } from './engine-error.ts'
import { readEngineStatus } from './engine-status.ts'
import { createImageBuilder, type ImageBuilder } from './image-builder.ts'
import { checkLimits } from './limits-check.ts'
import { openConnection } from './open-connection.ts'
import { removeContainer } from './remove-container.ts'

const QUICK_MS = 10_000
const SLOW_MS = 30_000

export interface DockerEngineOptions {
  limits: SandboxLimits
  /** The user's own image; undefined is ours. */
  image?: string | undefined
  logger: Logger
  /** Defaults to what DOCKER_HOST and its like say. */
  docker?: Dockerode
  /** Defaults to the builder of this project's image. */
  images?: ImageBuilder
}

export function createDockerEngine(options: DockerEngineOptions): SandboxEngine {
  const { limits, logger, docker = new Dockerode() } = options
  const images = options.images ?? createImageBuilder(docker, { image: options.image, logger })
  let imageName: string | undefined
  const context = { image: options.image ?? 'of this project', runtime: limits.runtime, network: limits.network }
  const call = createEngineCall(docker, context)
  const connections = new Set<DockerWorkspaceConnection>()
  const isGvisor = limits.runtime?.includes('runsc') ?? false

  return {
    status: () => readEngineStatus(docker, call),
    hasImage: () => images.exists(),

    async ensureImage(onProgress) {
      imageName = await images.ensure(onProgress)
      return imageName
    },

    async create(owner) {
      // The builder reads and hashes files to know the name; a cold start should not wait for that every time.
      imageName ??= await images.name()
      return createContainer({ docker, call, limits, image: imageName, owner, logger })
    },

    async connect(containerId, epoch, { resume = false } = {}) {
      const connection = await openConnection({ docker, call, logger, containerId, epoch, resume, gvisor: isGvisor })
      connections.add(connection)
      void connection.closed.then(() => connections.delete(connection))
      return connection
    },

    inspect: (containerId) => inspectContainer(docker, call, containerId),

    async pause(containerId) {
      await call({ to: 'pause a container', ms: QUICK_MS }, (abortSignal) =>
        docker.getContainer(containerId).pause({ abortSignal })
      ).catch(unless('container_paused'))
    },

    unpause: (containerId) => unpauseContainer(docker, call, containerId),

    async remove(containerId) {
      // Killing a paused gVisor takes its full 10 seconds.
      if (isGvisor) await unpauseContainer(docker, call, containerId).catch(() => {})
      await removeContainer(docker, call, containerId)
    },

    list: (deployment) => listContainers(docker, call, deployment),

    async verifyLimits(connection) {
      const seen = await connection.limits()
      const engine = isGvisor ? await readHostConfig(docker, call, connection.containerId) : undefined
      checkLimits(limits, seen, engine)
      return seen
    },

    async close() {
      await Promise.all([...connections].map((connection) => connection.close()))
    }
  }
}

interface CreateOptions {
  docker: Dockerode
  call: EngineCall
  limits: SandboxLimits
  image: string
  owner: SandboxOwner
  logger: Logger
}

async function createContainer({ docker, call, limits, image, owner, logger }: CreateOptions): Promise<string> {
  // A name of our own making: when the engine's answer is lost, it is all there is to remove the container by.
  const name = `mcp-sandbox-${randomUUID()}`
  const spec = containerSpec({ limits, owner, image, createdAt: Date.now() })
  let isMade = false
  try {
    const { id } = await call({ to: 'create a container', ms: SLOW_MS }, (abortSignal) => {
      // Told apart like this, dockerode does not put the whole body into the address as well.
      const request = { _query: { name }, _body: spec, abortSignal }
      return docker.createContainer(request)
    })
    isMade = true
    await call({ to: 'start a container', ms: SLOW_MS }, (abortSignal) =>
      docker.getContainer(id).start({ abortSignal })
    )
    return id
  } catch (error) {
    if (!isMade && neverReached(error)) throw error
    await removeContainer(docker, call, name).catch((err) => logger.warn({ err, name }, 'container left behind'))
    throw error
  }
}

async function unpauseContainer(docker: Dockerode, call: EngineCall, containerId: string): Promise<void> {
  await call({ to: 'unpause a container', ms: QUICK_MS }, async (abortSignal) => {
    try {
      await docker.getContainer(containerId).unpause({ abortSignal })
    } catch (error) {
      if (!/is not paused/i.test(String(error))) throw error
    }
  })
}

async function readHostConfig(docker: Dockerode, call: EngineCall, id: string): Promise<Dockerode.HostConfig> {
  return call({ to: 'inspect a container', ms: QUICK_MS }, async (abortSignal) => {
    const { HostConfig } = await docker.getContainer(id).inspect({ abortSignal })
    return HostConfig
  })
}

async function listContainers(docker: Dockerode, call: EngineCall, deployment: string): Promise<ContainerSummary[]> {
  const filters = { label: [`${LABEL.app}=${APP}`, `${LABEL.deployment}=${deployment}`] }
  const containers = await call({ to: 'list containers', ms: QUICK_MS }, (abortSignal) =>
    docker.listContainers({ all: true, filters, abortSignal })
  )
  return containers.map(({ Id, Labels, Created, State }) => ({
    id: Id,
    deployment,
    instance: Labels[LABEL.instance] ?? '',
    createdAt: Number(Labels[LABEL.created]) || Created * 1000,
    state: State
  }))
}

function unless(code: string): (error: unknown) => void {
  return (error) => {
    if (!isAppError(error, code)) throw error
  }
}
