/** The sockets of container engines on this machine: anyone who can write to one of them is root here. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Folders, because an engine keeps several sockets there and creates more while it runs. */
const SYSTEM = [
  '/run/docker',
  '/run/containerd',
  '/run/podman',
  '/run/crio',
  '/run/buildkit',
  '/run/k3s',
  '/run/docker.sock',
  '/var/run/docker.sock',
  '/run/cri-dockerd.sock'
]
const OF_A_USER = /^(docker|containerd|podman|crio|buildkit)/

/** Files and folders; not all of them exist. */
export function enginePlaces(environment: Record<string, string | undefined>): string[] {
  const named = environment.DOCKER_HOST?.replace(/^unix:\/\//, '') ?? ''
  const folder = environment.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? 0}`
  const ofUser = namesIn(folder).filter((name) => OF_A_USER.test(name))
  return [...(named.startsWith('/') ? [named] : []), ...SYSTEM, ...ofUser.map((name) => join(folder, name))]
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
