/**
 * Sockets through which a server gets out of its isolation: those of container engines and machine managers, whose users are root here,
 * and those of service managers and buses, which start programs outside of it.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Folders where possible, because an engine keeps several sockets there and creates more while it runs. */
const SYSTEM = [
  ...['/run/docker', '/run/containerd', '/run/podman', '/run/crio', '/run/buildkit', '/run/k3s', '/run/k0s'],
  ...['/run/docker.sock', '/var/run/docker.sock', '/run/cri-dockerd.sock', '/run/host-services'],
  ...['/var/lib/lxd', '/var/snap/lxd/common/lxd', '/var/lib/incus', '/run/incus', '/run/libvirt', '/run/snapd.socket'],
  ...['/run/systemd/private', '/run/dbus']
]
/** In the runtime folder of a user. They may appear later. */
const OF_A_SESSION = [
  ...['docker.sock', 'docker', 'dockerd-rootless', 'podman', 'containerd', 'containerd-rootless', 'crio'],
  ...['buildkit', 'buildkit-default', 'libvirt', 'bus', 'systemd', 'dbus-1']
]
const LOOKS_LIKE_ENGINE = /^(docker|containerd|podman|crio|buildkit)/
/** In the home folder. */
const OF_A_HOME = ['.docker/desktop', '.docker/run', '.colima', '.lima', '.rd']

/** Files and folders; most of them do not exist. */
export function enginePlaces(environment: Record<string, string | undefined>): string[] {
  const { DOCKER_HOST, CONTAINER_HOST, DBUS_SESSION_BUS_ADDRESS, HOME } = environment
  const named = [DOCKER_HOST, CONTAINER_HOST].map((host) => host?.replace(/^unix:\/\//, '') ?? '')
  const bus = /^unix:path=([^,;]+)/.exec(DBUS_SESSION_BUS_ADDRESS ?? '')?.[1] ?? ''
  const folder = environment.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? 0}`
  const ofUser = new Set([...OF_A_SESSION, ...namesIn(folder).filter((name) => LOOKS_LIKE_ENGINE.test(name))])
  return [
    ...[...named, bus].filter((path) => path.startsWith('/')),
    ...SYSTEM,
    ...[...ofUser].map((name) => join(folder, name)),
    ...(HOME?.startsWith('/') ? OF_A_HOME.map((name) => join(HOME, name)) : [])
  ]
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
