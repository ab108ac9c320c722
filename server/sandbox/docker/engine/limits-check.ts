import type { HostConfig } from 'dockerode'
import type { LimitsResult } from '../../../../workspace-server/protocol.ts'
import { AppError } from '../../../lib/errors.ts'
import type { SandboxLimits } from '../../port.ts'

const MEGABYTE = 1024 * 1024
/** The kernel creates these in every network namespace once a tunnel module is loaded. They are down and lead nowhere. */
const FALLBACK_DEVICE = /^(lo|tunl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|sit0|ip6tnl0|ip6gre0)$/

/**
 * Compares the limits that the container sees with those requested, because some engines silently ignore limits. `engine` is what
 * the engine says it set. It is used where the kernel inside shows nothing, and passed only for runtimes that are known for this.
 */
export function checkLimits(asked: SandboxLimits, seen: LimitsResult, engine?: HostConfig): void {
  const off = [...unenforcedLimits(asked, seen, engine), ...unenforcedRestrictions(asked, seen, engine)]
  if (off.length === 0) return
  const message = `The container engine does not enforce: ${off.join('; ')}.`
  throw new AppError('unavailable', 'limits_not_enforced', message, { details: { seen: { ...seen } } })
}

function unenforcedLimits(asked: SandboxLimits, seen: LimitsResult, engine: HostConfig | undefined): string[] {
  const memory = seen.memoryBytes ?? engine?.Memory ?? null
  const pids = seen.pids ?? engine?.PidsLimit ?? null
  const cpus = seen.cpus ?? (engine?.NanoCpus ? engine.NanoCpus / 1e9 : null)
  const workspaceBytes = asked.workspaceMb * MEGABYTE
  return [
    ...exceeded('memory in bytes', memory, asked.memoryMb * MEGABYTE),
    ...exceeded('processes', pids, asked.pids),
    ...exceeded('CPUs', cpus, asked.cpus + 0.01),
    ...exceeded('workspace in bytes', seen.workspaceBytes, workspaceBytes + MEGABYTE)
  ]
}

/** A requested limit of 0 or less means no limit. */
function exceeded(what: string, seen: number | null, most: number): string[] {
  if (seen !== null && seen > 0 && seen <= most) return []
  return [`${what} (asked for ${Math.round(most * 100) / 100}, found ${seen ?? 'none'})`]
}

function unenforcedRestrictions(asked: SandboxLimits, seen: LimitsResult, engine: HostConfig | undefined): string[] {
  const network = seen.interfaces.filter((name) => !FALLBACK_DEVICE.test(name))
  // Under gVisor, its own kernel protects these parts of the host's kernel; the system call filter does not.
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
