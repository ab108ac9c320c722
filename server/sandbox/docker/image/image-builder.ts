/**
 * Owns the sandbox image: a base (our own, or the user's SANDBOX_IMAGE) plus one step that adds the workspace server. Does not
 * know about containers that use it. Invariant: an image with our name has been tested, and its name changes with its content.
 * Images of older versions stay until the user removes them (images/README.md).
 */

import type Dockerode from 'dockerode'
import { AppError, isAppError } from '../../../lib/errors.ts'
import type { Logger } from '../../../lib/logger.ts'
import { SingleFlight } from '../../../lib/waiting/single-flight.ts'
import { DEFAULT_UIDS, type UidRange } from '../../uid-range.ts'
import { engineAddress, isProxyRefusal, neverReached, translateEngineError } from '../engine/engine-error.ts'
import { IMAGE_LABEL, type ImageAssets, readImageAssets, repoAndTag, sandboxImageName } from './image-assets.ts'
import { defaultBaseName, ensureDefaultBase } from './image-base.ts'
import { sandboxDockerfile } from './image-dockerfile.ts'
import { engineArch, inspectImage } from './image-lookup.ts'
import { ensureOwnBase, unusable } from './image-own.ts'
import { readBase, whyUnusable } from './image-probe.ts'
import { engineMessage, runEngineJob } from './image-progress.ts'
import { tarStream } from './image-tar.ts'
import { withUsers } from './image-users.ts'

export interface ImageBuilderOptions {
  /** The user's own base; defaults to ours. */
  image?: string | undefined
  /** The user ids that have a name in the image; defaults to DEFAULT_UIDS. */
  uids?: UidRange | undefined
  logger: Logger
  assets?: () => Promise<ImageAssets>
}

export interface ImageBuilder {
  name(): Promise<string>
  exists(): Promise<boolean>
  /** Concurrent calls share one build. */
  ensure(onProgress?: (line: string) => void): Promise<string>
}

type Say = (line: string) => void

const RECIPE = sandboxDockerfile({ base: 'base', nodeImage: null, linkNode: true, probe: true })

export function createImageBuilder(docker: Dockerode, options: ImageBuilderOptions): ImageBuilder {
  const { image: own, logger, assets: readAssets = readImageAssets, uids = DEFAULT_UIDS } = options
  const recipe = `${RECIPE}${uids.first}-${uids.last}`
  const listeners = new Set<Say>()
  const builds = new SingleFlight<string>()

  const say: Say = (line) => {
    logger.debug({ line }, 'sandbox image')
    for (const listener of listeners) listener(line)
  }

  /** Returns null if the user's own image is missing, so that there is no name yet. */
  async function findName(assets: ImageAssets): Promise<string | null> {
    if (!own) return sandboxImageName(assets, defaultBaseName(assets), recipe)
    const base = await inspectImage(docker, own)
    return base && sandboxImageName(assets, base.Id, recipe)
  }

  async function make(): Promise<string> {
    const assets = await readAssets()
    const known = await findName(assets)
    if (known && (await inspectImage(docker, known))) return known
    const since = performance.now()
    const base = own ? await ensureOwnBase(docker, own, say) : await ensureDefaultBase(docker, assets, say)
    const name = sandboxImageName(assets, base, recipe)
    await derive(docker, { assets, base, own, name, uids, say })
    say(`The sandbox image ${name} is ready after ${Math.ceil((performance.now() - since) / 1000)} s.`)
    return name
  }

  return {
    async name() {
      const name = await findName(await readAssets())
      if (name) return name
      throw new AppError('not-found', 'sandbox_image_missing', `The engine has no image ${own} (SANDBOX_IMAGE).`)
    },
    async exists() {
      const name = await findName(await readAssets())
      return name !== null && (await inspectImage(docker, name)) !== null
    },
    async ensure(onProgress) {
      if (onProgress) listeners.add(onProgress)
      try {
        return await builds.run(make)
      } catch (error) {
        if (neverReached(error)) throw translateEngineError(error, 'build', { address: await engineAddress(docker) })
        throw isAppError(error) ? error : isProxyRefusal(error) ? needsBuild(error) : failed(error)
      } finally {
        if (onProgress) listeners.delete(onProgress)
      }
    }
  }
}

interface Derivation {
  assets: ImageAssets
  base: string
  own: string | undefined
  name: string
  uids: UidRange
  say: Say
}

async function derive(docker: Dockerode, derivation: Derivation): Promise<void> {
  const { own, name, uids, say } = derivation
  say('Adding the workspace server and Node…')
  const body = await context(docker, derivation)
  const job = { what: 'the engine to build the sandbox image', quietMs: 300_000, totalMs: 1_200_000, body, onLine: say }
  const id = await runEngineJob(job, (abortSignal) =>
    docker.buildImage(body, { forcerm: true, labels: { [IMAGE_LABEL]: name }, abortSignal })
  )
  if (!id) throw new Error('the engine did not say which image it built')
  say('Trying it…')
  const why = await whyUnusable(docker, id, uids.first)
  if (why) {
    const image = docker.getImage(id)
    await image.remove({ force: true }).catch(() => {})
    throw unusable(own ?? name, why)
  }
  await docker.getImage(id).tag(repoAndTag(name))
}

async function context(docker: Dockerode, { assets, base, own, name, uids }: Derivation) {
  const { file } = assets.node
  const arch = await engineArch(docker)
  const local = file?.arch === arch ? file : null
  const probe = assets.probes[arch]
  const found = await readBase(docker, base, uids.first)
  if (found.problem !== null) throw unusable(own ?? name, found.problem)
  const { passwd, group } = withUsers(found, uids)
  const linkNode = !own || !found.hasNode
  const nodeImage = local ? null : assets.node.publicImage
  const binary = local && { file: local.path, size: local.size }
  const link = { link: '/opt/mcp/bin/node' }
  const dockerfile = sandboxDockerfile({ base, nodeImage, linkNode, probe: probe !== undefined })
  return tarStream([
    { path: 'Dockerfile', mode: 0o644, content: Buffer.from(dockerfile) },
    { path: 'passwd', mode: 0o644, content: Buffer.from(passwd) },
    { path: 'group', mode: 0o644, content: Buffer.from(group) },
    ...(probe ? [{ path: 'kernel-probe', mode: 0o755, content: probe }] : []),
    { path: 'idle', mode: 0o755, content: assets.idle },
    { path: 'server.mjs', mode: 0o644, content: assets.server },
    ...(linkNode ? [{ path: 'link/node', mode: 0o777, content: link }] : []),
    ...(binary ? [{ path: 'node', mode: 0o711, content: binary }] : []),
    ...(binary ? [{ path: 'readable-node', mode: 0o755, content: binary }] : [])
  ])
}

function needsBuild(cause: unknown): AppError {
  const message =
    "The engine has no sandbox image of this version, and its proxy does not allow builds: build it on the engine's machine with `npm run setup`, or with `mcp-orchestrator doctor` on the engine's own socket."
  return new AppError('unavailable', 'sandbox_image_missing', message, { cause })
}

function failed(cause: unknown): AppError {
  const message = `The sandbox image could not be built: ${engineMessage(cause)}`
  return new AppError('unavailable', 'sandbox_image_failed', message, { cause })
}
