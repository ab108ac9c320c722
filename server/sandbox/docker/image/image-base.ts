import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Dockerode from 'dockerode'
import { AppError } from '../../../lib/errors.ts'
import { isProxyRefusal } from '../engine/engine-error.ts'
import { baseImageName, type ImageAssets, repoAndTag } from './image-assets.ts'
import { DEBOOTSTRAP_RECIPE, debootstrap } from './image-debootstrap.ts'
import { engineArch, inspectImage, pullUnlessPresent } from './image-lookup.ts'
import { engineMessage, runEngineJob } from './image-progress.ts'
import { tarStream } from './image-tar.ts'

const PUBLIC_BASE = 'debian:bookworm-slim'
const MINUTE = 60_000

type Say = (line: string) => void

/** Both ways of building the base give the same name, because the name depends only on the inputs. */
export function defaultBaseName(assets: ImageAssets): string {
  return baseImageName(assets, DEBOOTSTRAP_RECIPE)
}

/** Makes sure that our own base image exists: from a public image if a registry responds, otherwise from Debian's packages. */
export async function ensureDefaultBase(docker: Dockerode, assets: ImageAssets, say: Say): Promise<string> {
  const name = defaultBaseName(assets)
  if (await inspectImage(docker, name)) return name
  let reason: string
  try {
    await fromRegistry(docker, assets, name, say)
    return name
  } catch (error) {
    if (isProxyRefusal(error)) throw error
    reason = engineMessage(error)
  }
  say(`Could not get a base from a registry (${reason}).`)
  try {
    await fromPackages(docker, assets, name, say)
    return name
  } catch (error) {
    const advice =
      'Give the engine access to a registry, install mmdebstrap (`npm run setup` in a checkout does), or set SANDBOX_IMAGE to an image it has.'
    const tried = `${PUBLIC_BASE}: ${reason}; built locally: ${engineMessage(error)}`
    const message = `The sandbox image has no base (${tried}). ${advice}`
    throw new AppError('unavailable', 'sandbox_image_unavailable', message, { cause: error })
  }
}

async function fromRegistry(docker: Dockerode, assets: ImageAssets, name: string, say: Say): Promise<void> {
  say(`Looking for ${PUBLIC_BASE}…`)
  await pullUnlessPresent(docker, PUBLIC_BASE, say)
  say('Installing the tools of the sandbox into it (takes a minute or two)…')
  const body = tarStream([
    { path: 'Dockerfile', mode: 0o644, content: assets.baseDockerfile },
    { path: 'packages.txt', mode: 0o644, content: assets.packages },
    { path: 'prepare-base.sh', mode: 0o644, content: assets.prepareBase }
  ])
  const what = 'the engine to build the base image'
  await runEngineJob({ what, quietMs: 2 * MINUTE, totalMs: 20 * MINUTE, body, onLine: say }, (abortSignal) =>
    docker.buildImage(body, { t: name, forcerm: true, abortSignal })
  )
}

async function fromPackages(docker: Dockerode, assets: ImageAssets, name: string, say: Say): Promise<void> {
  const arch = await engineArch(docker)
  if (!assets.node.file) throw new Error('this machine has no Node that fits into the image: run `npm rebuild node`')
  if (assets.node.file.arch !== arch) throw new Error(`the engine runs ${arch} programs and this machine does not`)
  say('Building a base from Debian packages on this machine (takes about a minute)…')
  const dir = await mkdtemp(join(tmpdir(), 'mcp-orchestrator-base-'))
  try {
    const body = createReadStream(await debootstrap(dir, assets, say))
    say('Importing the base into the engine…')
    const what = 'the engine to import the base image'
    await runEngineJob({ what, quietMs: 5 * MINUTE, totalMs: 10 * MINUTE, body }, (abortSignal) =>
      docker.importImage(body, { ...repoAndTag(name), abortSignal })
    )
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
