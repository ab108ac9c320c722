import { createHash } from 'node:crypto'
import type { ContainerCreateOptions, HostConfig } from 'dockerode'
import { INSIDE } from '../../../workspace-server/protocol.ts'
import type { SandboxLimits, SandboxOwner } from '../port.ts'

export const LABEL = {
  app: 'mcp-orchestrator.app',
  deployment: 'mcp-orchestrator.deployment',
  instance: 'mcp-orchestrator.instance',
  created: 'mcp-orchestrator.created',
  spec: 'mcp-orchestrator.spec',
  /** Of a child only: its name in mcp.json. */
  server: 'mcp-orchestrator.server'
} as const
export const APP = 'sandbox'
export const CHILD_APP = 'child'

const MEGABYTE = 1024 * 1024
const USER_ID = 10001
/** How long a container of a deployment that is gone for good lives on. */
const IDLE_SECONDS = 1800
const TMP_MB = 64

export interface ContainerSpecInput {
  limits: SandboxLimits
  owner: SandboxOwner
  image: string
  createdAt: number
}

/** What a sandbox is made of, the same for every session: what is particular to one comes after the claim. */
export function containerSpec({ limits, owner, image, createdAt }: ContainerSpecInput): ContainerCreateOptions {
  const spec: ContainerCreateOptions = {
    Image: image,
    Entrypoint: [INSIDE.idle],
    Cmd: [String(IDLE_SECONDS)],
    ...hardened(limits)
  }
  const Labels = {
    [LABEL.app]: APP,
    [LABEL.deployment]: owner.deployment,
    [LABEL.instance]: owner.instance,
    [LABEL.created]: String(createdAt),
    [LABEL.spec]: createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 16)
  }
  return { ...spec, Labels }
}

/** All that keeps a container in, whatever runs there. */
export function hardened(limits: SandboxLimits) {
  return {
    User: `${USER_ID}:${USER_ID}`,
    WorkingDir: INSIDE.root as string,
    Hostname: 'sandbox',
    StopTimeout: 1,
    NetworkDisabled: limits.network === 'none',
    HostConfig: hostConfig(limits)
  } satisfies ContainerCreateOptions
}

/** The default seccomp profile and the masked paths are left as the engine sets them. */
function hostConfig(limits: SandboxLimits): HostConfig {
  const memory = limits.memoryMb * MEGABYTE
  return {
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges'],
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
    Tmpfs: tmpfs(limits),
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
function tmpfs(limits: SandboxLimits): Record<string, string> {
  const own = `nosuid,nodev,uid=${USER_ID},gid=${USER_ID}`
  const inodes = Math.max(16_384, limits.workspaceMb * 256)
  return {
    [INSIDE.root]: `rw,exec,${own},mode=0700,size=${limits.workspaceMb}m,nr_inodes=${inodes}`,
    '/tmp': `rw,exec,nosuid,nodev,mode=1777,size=${TMP_MB}m,nr_inodes=16384`,
    [INSIDE.state]: `rw,noexec,${own},mode=0700,size=1m,nr_inodes=1024`
  }
}
