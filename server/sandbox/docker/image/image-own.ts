import type Dockerode from 'dockerode'
import { AppError } from '../../../lib/errors.ts'
import { isProxyRefusal } from '../engine/engine-error.ts'
import { inspectImage, pullUnlessPresent } from './image-lookup.ts'
import { engineMessage } from './image-progress.ts'

const NEEDS = 'It needs /bin/bash, glibc and libstdc++ (images/README.md).'

/** Returns the id of the base that the user chose with SANDBOX_IMAGE; pulls it if the engine does not have it. */
export async function ensureOwnBase(docker: Dockerode, image: string, say: (line: string) => void): Promise<string> {
  const info = (await inspectImage(docker, image)) ?? (await pull(docker, image, say))
  const volumes = Object.keys(info.Config.Volumes ?? {})
  // An anonymous volume would be a writable place on the host's disk without a size limit.
  if (volumes.length > 0) throw unusable(image, `it declares volumes (${volumes.slice(0, 5).join(', ')})`)
  return info.Id
}

async function pull(docker: Dockerode, image: string, say: (line: string) => void) {
  say(`The engine has no ${image}, asking its registry…`)
  try {
    return await pullUnlessPresent(docker, image, say)
  } catch (error) {
    if (isProxyRefusal(error)) throw error
    throw missing(image, error)
  }
}

function missing(image: string, cause: unknown): AppError {
  const message = `The engine does not have the image ${image} and could not pull it (${engineMessage(cause)}): run \`docker pull ${image}\` or build it, or name another image.`
  return new AppError('unavailable', 'sandbox_image_missing', message, { cause })
}

export function unusable(image: string, why: string): AppError {
  return new AppError('invalid', 'sandbox_image_unusable', `${image} can't be a sandbox: ${why}. ${NEEDS}`)
}
