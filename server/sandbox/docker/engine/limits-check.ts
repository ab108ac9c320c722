import type { HostConfig } from 'dockerode'
import type { LimitsResult } from '../../../../workspace-server/protocol.ts'
import { AppError } from '../../../lib/errors.ts'
import type { SandboxLimits } from '../../port.ts'

const MEGABYTE = 1024 * 1024
/** The kernel makes these in every network namespace once a tunnel module is loaded; they are down and lead nowhere. */
const FALLBACK_DEVICE = /^(lo|tunl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|sit0|ip6tnl0|ip6gre0)$/

/**
 * Compares what the container sees with what was asked for; some engines ignore limits silently. `engine` is what the engine
 * says it set: it stands in where the kernel inside shows nothing, and is given only for runtimes known to be so.
 */
export function checkLimits(asked: SandboxLimits, seen: LimitsResult, engine?: HostConfig): void {
  const off = [...limitsOff(asked, seen, engine), ...powersOff(asked, seen, engine)]
  if (off.length === 0) return
  throw new AppError(
    'unavailable',
    'limits_not_enforced',
    `The container engine does not enforce: ${off.join('; ')}.`,
    {
      details: { seen: { ...seen } }
    }
  )
}

function limitsOff(asked: SandboxLimits, seen: LimitsResult, engine: HostConfig | undefined): string[] {
  const memory = seen.memoryBytes ?? engine?.Memory ?? null
  const pids = seen.pids ?? engine?.PidsLimit ?? null
  const cpus = seen.cpus ?? (engine?.NanoCpus ? engine.NanoCpus / 1e9 : null)
  const workspaceBytes = asked.workspaceMb * MEGABYTE
  return [
    ...over('memory in bytes', memory, asked.memoryMb * MEGABYTE),
    ...over('processes', pids, asked.pids),
    ...over('CPUs', cpus, asked.cpus + 0.01),
    ...over('workspace in bytes', seen.workspaceBytes, workspaceBytes + MEGABYTE)
  ]
}

/** A limit of 0 or less is none at all. */
function over(what: string, seen: number | null, most: number): string[] {
  if (seen !== null && seen > 0 && seen <= most) return []
  return [`${what} (asked for ${Math.round(most * 100) / 100}, found ${seen ?? 'none'})`]
}

function powersOff(asked: SandboxLimits, seen: LimitsResult, engine: HostConfig | undefined): string[] {
  const network = seen.interfaces.filter((name) => !FALLBACK_DEVICE.test(name))
  // gVisor's kernel stands between these and the host's: there the list of system calls is not what keeps them shut.
  const open = engine === undefined ? (seen.openKernelParts ?? []) : []
  const isFiltered = engine !== undefined || seen.seccomp === 2
  const noNewPrivileges = seen.noNewPrivileges ?? engine?.SecurityOpt?.includes('no-new-privileges')
  return [
    ...(seen.uid === 0 ? ['a user other than root'] : []),
    ...(isFiltered && open.length === 0 ? [] : [`the list of system calls (found ${open.join(', ') || 'no filter'})`]),
    ...(seen.capabilities === '0' ? [] : [`no capabilities (found ${seen.capabilities})`]),
    ...(noNewPrivileges ? [] : ['no new privileges']),
    ...(seen.rootWritable ? ['a read-only root file system'] : []),
    ...(asked.network === 'none' && network.length > 0 ? [`no network (found ${network.join(', ')})`] : [])
  ]
}
