import type { LimitsResult } from '../../../workspace-server/protocol.ts'
import type { SandboxLimits } from '../port.ts'
import { checkLimits, type EngineLimits } from '../workspace/limits-check.ts'
import { isGvisor, type PodOptions } from './pod-spec.ts'

/** Throws `limits_not_enforced` if the pod sees other limits than those requested. */
export function checkPodLimits(limits: SandboxLimits, { seccompProfile }: PodOptions, seen: LimitsResult): void {
  const takesRuntimeFilter = seccompProfile === undefined
  checkLimits(limits, seen, { engine: gvisorLimits(limits), hasInterface: true, takesRuntimeFilter })
}

/** Under gVisor, the kernel inside shows none of the limits, and the cluster has accepted ours. */
function gvisorLimits(limits: SandboxLimits): EngineLimits | undefined {
  if (!isGvisor(limits)) return undefined
  return { memoryBytes: limits.memoryMb * 2 ** 20, pids: limits.pids, cpus: limits.cpus, noNewPrivileges: true }
}
