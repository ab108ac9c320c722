/**
 * Creates a container with its own user id. The container's name reserves the id: the engine keeps names unique, so only one of
 * several orchestrators that share an engine gets it. The id is free again when the container is gone.
 */
import { randomInt, randomUUID } from 'node:crypto'
import type Dockerode from 'dockerode'
import { AppError } from '../../../lib/errors.ts'
import type { Logger } from '../../../lib/logger.ts'
import { DEFAULT_UIDS, type UidRange, uidCount } from '../../uid-range.ts'
import { LABEL } from './container-spec.ts'
import type { EngineCall } from './engine-call.ts'
import { engineStatus, neverReached, nullIfMissing } from './engine-error.ts'
import { removeContainer } from './remove-container.ts'
import { limitSocketMemory } from './socket-memory.ts'

const CREATE_MS = 30_000
const START_MS = 30_000
const LOOK_MS = 10_000
const MAX_TRIES = 256

export interface CreateContainerOptions {
  docker: Dockerode
  call: EngineCall
  uids?: UidRange | undefined
  logger: Logger
}

/** Returns the container's id. Leaves nothing behind when it fails. */
export async function createContainer(
  options: CreateContainerOptions,
  specFor: (uid: number) => Dockerode.ContainerCreateOptions
): Promise<string> {
  const { uids = DEFAULT_UIDS } = options
  const tried = new Set<number>()
  while (tried.size < Math.min(uidCount(uids), MAX_TRIES)) {
    const uid = randomInt(uids.first, uids.last + 1)
    if (tried.has(uid)) continue
    tried.add(uid)
    const id = await tryCreate(options, `mcp-sandbox-${uid}`, specFor(uid))
    if (id !== null) return id
  }
  const message = `No user id of ${uids.first}-${uids.last} is free on the container engine: close some sessions, or set SANDBOX_UIDS to a wider range.`
  throw new AppError('unavailable', 'sandbox_uids_used_up', message)
}

/** Creates a container and starts it. Leaves nothing behind when it fails. */
export async function startContainer(...[options, specFor]: Parameters<typeof createContainer>): Promise<string> {
  const { docker, call, logger } = options
  const id = await createContainer(options, specFor)
  try {
    await startCreated(docker, call, id)
    return id
  } catch (error) {
    await removeContainer(docker, call, id).catch((err) => logger.warn({ err, id }, 'container left behind'))
    throw error
  }
}

export async function startCreated(docker: Dockerode, call: EngineCall, id: string): Promise<void> {
  const start = { to: 'start a container', ms: START_MS }
  await call(start, (abortSignal) => docker.getContainer(id).start({ abortSignal }))
  await limitSocketMemory(docker, call, id)
}

/** Returns null if another container has this name. */
async function tryCreate(
  options: CreateContainerOptions,
  name: string,
  spec: Dockerode.ContainerCreateOptions
): Promise<string | null> {
  const { docker, call, logger } = options
  const claim = randomUUID()
  try {
    return await call({ to: 'create a container', ms: CREATE_MS }, async (abortSignal) => {
      // With query and body in separate fields, dockerode does not put the whole body into the URL as well.
      const _body = { ...spec, Labels: { ...spec.Labels, [LABEL.claim]: claim } }
      const request = { _query: { name }, _body, abortSignal }
      return docker.createContainer(request).then(({ id }) => id, nullIfTaken)
    })
  } catch (error) {
    // The engine may have created the container although its response was lost.
    if (!neverReached(error)) {
      await removeClaimed(options, name, claim).catch((err) => logger.warn({ err, name }, 'container left behind'))
    }
    throw error
  }
}

function nullIfTaken(error: unknown): null {
  if (engineStatus(error) === 409) return null
  throw error
}

/** Removes by id, because the name may belong to another container by now. */
async function removeClaimed({ docker, call }: CreateContainerOptions, name: string, claim: string): Promise<void> {
  const found = await call({ to: 'inspect a container', ms: LOOK_MS }, (abortSignal) =>
    docker.getContainer(name).inspect({ abortSignal }).catch(nullIfMissing)
  )
  if (found?.Config.Labels[LABEL.claim] === claim) await removeContainer(docker, call, found.Id)
}
