import type Dockerode from 'dockerode'
import { withDeadline } from '../../../lib/waiting/deadline.ts'
import { nullIfMissing } from '../engine/engine-error.ts'
import { runEngineJob } from './image-progress.ts'

const LOOKUP_MS = 15_000
/** An unreachable registry often stays silent instead of failing. */
const REGISTRY_QUIET_MS = 20_000
const PULL_MS = 30 * 60_000

/** Returns null if the engine does not have the image. */
export async function inspectImage(docker: Dockerode, image: string): Promise<Dockerode.ImageInspectInfo | null> {
  return withDeadline({ what: 'the engine to look for an image', ms: LOOKUP_MS }, () =>
    docker.getImage(image).inspect().catch(nullIfMissing)
  )
}

export async function pullUnlessPresent(
  docker: Dockerode,
  image: string,
  onLine: (line: string) => void
): Promise<Dockerode.ImageInspectInfo> {
  const present = await inspectImage(docker, image)
  if (present) return present
  const job = { what: `a registry to send ${image}`, quietMs: REGISTRY_QUIET_MS, totalMs: PULL_MS, onLine }
  await runEngineJob(job, (abortSignal) => docker.pull(image, { abortSignal }))
  const pulled = await inspectImage(docker, image)
  if (!pulled) throw new Error(`${image} was pulled but is missing`)
  return pulled
}

/** The engine's own name for its architecture: amd64, arm64. */
export async function engineArch(docker: Dockerode): Promise<string> {
  const what = 'the engine to tell its version'
  return (await withDeadline({ what, ms: LOOKUP_MS }, () => docker.version())).Arch
}
