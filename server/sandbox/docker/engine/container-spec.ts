import { createHash } from 'node:crypto'
import type { ContainerCreateOptions, HostConfig } from 'dockerode'
import { INSIDE } from '../../../../workspace-server/protocol.ts'
import type { SandboxLimits, SandboxOwner } from '../../port.ts'
import { seccompOption } from './seccomp-profile.ts'

export const LABEL = {
  app: 'mcp-orchestrator.app',
  deployment: 'mcp-orchestrator.deployment',
  instance: 'mcp-orchestrator.instance',
  created: 'mcp-orchestrator.created',
  spec: 'mcp-orchestrator.spec',
  /** Of a child only: its name in mcp.json. */
  server: 'mcp-orchestrator.server',
  /** Random: which attempt to make a container made this one. */
  claim: 'mcp-orchestrator.claim'
} as const
export const APP = 'sandbox'
export const CHILD_APP = 'child'

const MEGABYTE = 1024 * 1024
/** All sandboxes are in it beside their own: what an image or a folder grants to this group, each of them may read. */
export const SHARED_GROUP = '10001'
/** How long a container of a deployment that is gone for good lives on. */
const IDLE_SECONDS = 1800
const TMP_MB = 64

export interface ContainerSpecInput {
  limits: SandboxLimits
  owner: SandboxOwner
  image: string
  createdAt: number
  /** Of this container alone. */
  uid: number
}

/** What a sandbox is made of, the same for every session: what is particular to one comes after the claim. */
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

/** Taken with user 0 in place of the container's own, so that it is the same for all that differ in nothing else. */
export function specHash(spec: ContainerCreateOptions): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 16)
}

/** gVisor: its own kernel runs what is in the container, so some things are there that the host's would refuse. */
export function isGvisor({ runtime }: SandboxLimits): boolean {
  return runtime?.includes('runsc') ?? false
}

/** All that keeps a container in, whatever runs there. */
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

/** The masked paths are left as the engine sets them. */
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
    Init: true,
    PidsLimit: limits.pids,
    Memory: memory,
    // The sum with swap: equal to Memory means no swap.
    MemorySwap: memory,
    NanoCpus: Math.round(limits.cpus * 1e9),
    Ulimits: ulimits(limits),
    Tmpfs: tmpfs(limits, uid),
    // When the host itself runs out of memory, sandboxes go first.
    OomScoreAdj: 500,
    RestartPolicy: { Name: 'no' },
    // Else nobody could read OOMKilled after the end.
    AutoRemove: false,
    LogConfig: { Type: 'none', Config: {} },
    ...(limits.runtime === undefined ? {} : { Runtime: limits.runtime })
  }
}

function ulimits(limits: SandboxLimits) {
  // No `nproc`: the kernel counts it per user over all containers.
  const largestFile = Math.max(limits.workspaceMb, TMP_MB) * MEGABYTE
  return [
    { Name: 'nofile', Soft: 4096, Hard: 4096 },
    { Name: 'core', Soft: 0, Hard: 0 },
    { Name: 'fsize', Soft: largestFile, Hard: largestFile }
  ]
}

/** Counted against the memory limit, and bounded in inodes, which otherwise cost kernel memory without bound. */
function tmpfs(limits: SandboxLimits, uid: number): Record<string, string> {
  const own = `nosuid,nodev,uid=${uid},gid=${uid}`
  const inodes = Math.max(16_384, limits.workspaceMb * 256)
  return {
    [INSIDE.root]: `rw,exec,${own},mode=0700,size=${limits.workspaceMb}m,nr_inodes=${inodes}`,
    '/tmp': `rw,exec,nosuid,nodev,mode=1777,size=${TMP_MB}m,nr_inodes=16384`,
    [INSIDE.state]: `rw,noexec,${own},mode=0700,size=1m,nr_inodes=1024`
  }
}
