import { createHash } from 'node:crypto'
import type { ContainerCreateOptions } from 'dockerode'
import type { SandboxLimits } from '../port.ts'
import { SUPERVISE } from './child-scripts.ts'
import { CHILD_APP, hardened, LABEL } from './container-spec.ts'

export interface ChildSpecInput {
  limits: SandboxLimits
  image: string
  server: string
  instance: string
  folders: string[]
  createdAt: number
}

/** A session's hardening around a supervisor that lives no longer than our stream to it. */
export function childSpec({ limits, image, server, instance, folders, createdAt }: ChildSpecInput) {
  const { HostConfig, ...container } = hardened(limits)
  const spec: ContainerCreateOptions = {
    ...container,
    Image: image,
    Entrypoint: ['/bin/bash', '-c', SUPERVISE],
    Cmd: [],
    OpenStdin: true,
    // Else the end of our stream would be no end of its input.
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: {
      ...HostConfig,
      // Nobody may be left to remove it.
      AutoRemove: true,
      Mounts: folders.map((folder) => ({
        Type: 'bind' as const,
        Source: folder,
        Target: folder,
        ReadOnly: true,
        // What is mounted below would be writable on older engines.
        BindOptions: { Propagation: 'rprivate' as const, NonRecursive: true }
      }))
    }
  }
  const Labels = {
    [LABEL.app]: CHILD_APP,
    [LABEL.server]: server,
    [LABEL.instance]: instance,
    [LABEL.created]: String(createdAt),
    [LABEL.spec]: createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 16)
  }
  return { ...spec, Labels }
}
