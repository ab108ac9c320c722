import type { ContainerCreateOptions } from 'dockerode'
import type { SandboxLimits } from '../../port.ts'
import { CHILD_APP, hardened, LABEL, specHash } from '../engine/container-spec.ts'
import { SUPERVISOR } from './child-scripts.ts'

export interface ChildSpecInput {
  limits: SandboxLimits
  image: string
  server: string
  instance: string
  folders: string[]
  createdAt: number
  /** No other container has this user id. */
  uid: number
}

export function childSpec(input: ChildSpecInput) {
  const Labels = {
    [LABEL.app]: CHILD_APP,
    [LABEL.server]: input.server,
    [LABEL.instance]: input.instance,
    [LABEL.created]: String(input.createdAt),
    [LABEL.spec]: specHash(supervised({ ...input, uid: 0 }))
  }
  return { ...supervised(input), Labels }
}

/** A session's hardening, around a supervisor that ends with our stream. */
function supervised({ limits, image, folders, uid }: ChildSpecInput): ContainerCreateOptions {
  const { HostConfig, ...container } = hardened(limits, uid)
  return {
    ...container,
    Image: image,
    Entrypoint: SUPERVISOR,
    Cmd: [],
    OpenStdin: true,
    // Otherwise the supervisor's input would not end with our stream.
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: {
      ...HostConfig,
      // Nobody may be left to remove the container.
      AutoRemove: true,
      Mounts: [...(HostConfig.Mounts ?? []), ...folders.map(readOnly)]
    }
  }
}

function readOnly(folder: string) {
  // Older engines would leave nested mounts writable.
  const BindOptions = { Propagation: 'rprivate' as const, NonRecursive: true }
  return { Type: 'bind' as const, Source: folder, Target: folder, ReadOnly: true, BindOptions }
}
