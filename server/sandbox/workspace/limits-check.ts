import type { LimitsResult } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { SandboxLimits } from '../port.ts'

const MEGABYTE = 1024 * 1024
/** The kernel creates these in every network namespace once a tunnel module is loaded. They are down and lead nowhere. */
const FALLBACK_DEVICE = /^(lo|tunl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|sit0|ip6tnl0|ip6gre0)$/

/** Limits as the engine says it set them. */
export interface EngineLimits {
  memoryBytes?: number | undefined
  pids?: number | null | undefined
  cpus?: number | undefined
  noNewPrivileges?: boolean | undefined
}

/** The differences between engines. */
export interface LimitsTerms {
  /** Used where the kernel inside shows nothing, and passed only for runtimes that are known for this (gVisor). */
  engine?: EngineLimits | undefined
  /** Every sandbox has a network interface; another check tests that it leads nowhere. */
  hasInterface?: boolean
  /** The runtime's own list of system calls is enough, although it leaves parts of the kernel open. */
  takesRuntimeFilter?: boolean
}

/** Compares the limits that the container sees with those requested, because some engines silently ignore limits. */
export function checkLimits(asked: SandboxLimits, seen: LimitsResult, terms: LimitsTerms = {}): void {
  const off = [...unenforcedLimits(asked, seen, terms.engine), ...unenforcedRestrictions(asked, seen, terms)]
  if (off.length === 0) return
  const message = `The container engine does not enforce: ${off.join('; ')}.`
  throw new AppError('unavailable', 'limits_not_enforced', message, { details: { seen: { ...seen } } })
}

function unenforcedLimits(asked: SandboxLimits, seen: LimitsResult, engine: EngineLimits = {}): string[] {
  const workspaceBytes = asked.workspaceMb * MEGABYTE
  return [
    ...exceeded('memory in bytes', seen.memoryBytes ?? engine.memoryBytes ?? null, asked.memoryMb * MEGABYTE),
    ...exceeded('processes', processes(seen) ?? engine.pids ?? null, asked.pids),
    ...exceeded('CPUs', seen.cpus ?? engine.cpus ?? null, asked.cpus + 0.01),
    ...exceeded('workspace in bytes', seen.workspaceBytes, workspaceBytes + MEGABYTE)
  ]
}

/** The lower of the container's limit and the user's limit. */
function processes({ pids, processLimit = null }: LimitsResult): number | null {
  return pids === null || processLimit === null ? (pids ?? processLimit) : Math.min(pids, processLimit)
}

/** A requested limit of 0 or less means no limit. */
function exceeded(what: string, seen: number | null, most: number): string[] {
  if (seen !== null && seen > 0 && seen <= most) return []
  return [`${what} (asked for ${Math.round(most * 100) / 100}, found ${seen ?? 'none'})`]
}

function unenforcedRestrictions(asked: SandboxLimits, seen: LimitsResult, terms: LimitsTerms): string[] {
  const { engine, hasInterface = false, takesRuntimeFilter = false } = terms
  const network = hasInterface ? [] : seen.interfaces.filter((name) => !FALLBACK_DEVICE.test(name))
  // Under gVisor, its own kernel protects these parts of the host's kernel; the system call filter does not.
  const open = engine === undefined && !takesRuntimeFilter ? (seen.openKernelParts ?? []) : []
  const isFiltered = engine !== undefined || seen.seccomp === 2
  const noNewPrivileges = seen.noNewPrivileges ?? engine?.noNewPrivileges
  return [
    ...(seen.uid === 0 ? ['a user other than root'] : []),
    ...(isFiltered && open.length === 0 ? [] : [`the list of system calls (found ${open.join(', ') || 'no filter'})`]),
    ...(seen.capabilities === '0' ? [] : [`no capabilities (found ${seen.capabilities})`]),
    ...(noNewPrivileges ? [] : ['no new privileges']),
    ...(seen.rootWritable ? ['a read-only root file system'] : []),
    ...(asked.network === 'none' && network.length > 0 ? [`no network (found ${network.join(', ')})`] : [])
  ]
}
