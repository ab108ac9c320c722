import { createHash } from 'node:crypto'
import type { ContainerCreateOptions, HostConfig, MountConfig } from 'dockerode'
import { INSIDE } from '../../../../workspace-server/protocol.ts'
import type { SandboxLimits, SandboxOwner } from '../../port.ts'
import { seccompOption } from './seccomp-profile.ts'

export const LABEL = {
  app: 'mcp-orchestrator.app',
  deployment: 'mcp-orchestrator.deployment',
  instance: 'mcp-orchestrator.instance',
  created: 'mcp-orchestrator.created',
  spec: 'mcp-orchestrator.spec',
  /** Child containers only: the server's name in mcp.json. */
  server: 'mcp-orchestrator.server',
  /** A random value that identifies the attempt that created this container. */
  claim: 'mcp-orchestrator.claim'
} as const
export const APP = 'sandbox'
export const CHILD_APP = 'child'

const MEGABYTE = 1024 * 1024
/** Every sandbox is a member of this group, so each of them can read what an image or a folder grants to it. */
export const SHARED_GROUP = '10001'
/** How long a container lives after its deployment is gone for good. */
const IDLE_SECONDS = 1800
const TMP_MB = 64
/**
 * The host has one number of pseudo-terminals for all containers (`kernel.pty.max`), so each container gets its own share. The
 * volume has no name: the engine removes it together with the container.
 */
export const TERMINALS = {
  Type: 'volume',
  Source: '',
  Target: '/dev/pts',
  VolumeOptions: {
    NoCopy: true,
    Labels: {},
    DriverConfig: {
      Name: 'local',
      Options: { type: 'devpts', device: 'devpts', o: 'nosuid,noexec,gid=5,mode=0620,ptmxmode=0666,max=64' }
    }
  }
} satisfies MountConfig[number]

export interface ContainerSpecInput {
  limits: SandboxLimits
  owner: SandboxOwner
  image: string
  createdAt: number
  /** No other container has this user id. */
  uid: number
}

/**
 * The options for a sandbox container. They are the same for every session; session-specific data comes later, with the claim.
 */
export function containerSpec({ limits, owner, image, createdAt, uid }: ContainerSpecInput): ContainerCreateOptions {
  const spec: ContainerCreateOptions = {
    Image: image,
    Entrypoint: [INSIDE.idle],
    Cmd: [String(IDLE_SECONDS)],
    ...hardened(limits, uid)
  }
  const Labels = {
    [LABEL.app]: APP,
    [LABEL.deployment]: owner.deployment,
    [LABEL.instance]: owner.instance,
    [LABEL.created]: String(createdAt),
    [LABEL.spec]: specHash({ ...spec, ...hardened(limits, 0) })
  }
  return { ...spec, Labels }
}

/**
 * Hashes the spec with user 0 in place of the container's own user, so that specs that differ only in the user have the same
 * hash.
 */
export function specHash(spec: ContainerCreateOptions): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 16)
}

/** gVisor brings its own kernel, which allows some things that the host's kernel would refuse. */
export function isRunsc({ runtime }: SandboxLimits): boolean {
  return runtime?.includes('runsc') ?? false
}

/** No group may open ping sockets: what they queue counts against no limit of the container. The engine's default allows all. */
export const NO_PING = { 'net.ipv4.ping_group_range': '1 0' }

/** The options that confine a container, whatever runs in it. */
export function hardened(limits: SandboxLimits, uid: number) {
  return {
    User: `${uid}:${uid}`,
    WorkingDir: INSIDE.root as string,
    Hostname: 'sandbox',
    StopTimeout: 1,
    NetworkDisabled: limits.network === 'none',
    HostConfig: hostConfig(limits, uid)
  } satisfies ContainerCreateOptions
}

/** The masked paths stay as the engine sets them. */
function hostConfig(limits: SandboxLimits, uid: number): HostConfig {
  const memory = limits.memoryMb * MEGABYTE
  return {
    CapDrop: ['ALL'],
    GroupAdd: [SHARED_GROUP],
    SecurityOpt: ['no-new-privileges', seccompOption()],
    Privileged: false,
    ReadonlyRootfs: true,
    NetworkMode: limits.network,
    IpcMode: 'private',
    // Ours is the first process: no signal from inside stops or ends that one, and no command gets into its memory and streams.
    Init: isRunsc(limits),
    PidsLimit: limits.pids,
    Memory: memory,
    // Memory plus swap: the same value as Memory means no swap.
    MemorySwap: memory,
    NanoCpus: Math.round(limits.cpus * 1e9),
    Ulimits: ulimits(limits),
    Tmpfs: tmpfs(limits, uid),
    // gVisor's terminals are its own.
    Mounts: isRunsc(limits) ? [] : [TERMINALS],
    ...(isRunsc(limits) ? {} : { Sysctls: NO_PING }),
    // When the host itself runs out of memory, sandboxes go first.
    OomScoreAdj: 500,
    RestartPolicy: { Name: 'no' },
    // Otherwise OOMKilled could not be read after the container has ended.
    AutoRemove: false,
    LogConfig: { Type: 'none', Config: {} },
    ...(limits.runtime === undefined ? {} : { Runtime: limits.runtime })
  }
}

function ulimits(limits: SandboxLimits) {
  // There is no `nproc` limit because the kernel counts it per user across all containers.
  const largestFile = Math.max(limits.workspaceMb, TMP_MB) * MEGABYTE
  return [
    { Name: 'nofile', Soft: 4096, Hard: 4096 },
    { Name: 'core', Soft: 0, Hard: 0 },
    { Name: 'fsize', Soft: largestFile, Hard: largestFile }
  ]
}

/** tmpfs counts against the memory limit. Its inodes are limited too, because each costs kernel memory. */
function tmpfs(limits: SandboxLimits, uid: number): Record<string, string> {
  const own = `nosuid,nodev,uid=${uid},gid=${uid}`
  const inodes = Math.max(16_384, limits.workspaceMb * 256)
  return {
    [INSIDE.root]: `rw,exec,${own},mode=0700,size=${limits.workspaceMb}m,nr_inodes=${inodes}`,
    '/tmp': `rw,exec,nosuid,nodev,mode=1777,size=${TMP_MB}m,nr_inodes=16384`,
    [INSIDE.state]: `rw,noexec,${own},mode=0700,size=1m,nr_inodes=1024`
  }
}
