import type { SandboxLimits } from '../sandbox/port.ts'
import type { Settings } from './settings.ts'

export function sandboxLimits(settings: Settings): SandboxLimits {
  return {
    memoryMb: settings.SANDBOX_MEMORY_MB,
    cpus: settings.SANDBOX_CPUS,
    pids: settings.SANDBOX_PIDS,
    workspaceMb: settings.SANDBOX_WORKSPACE_MB,
    network: settings.SANDBOX_NETWORK,
    uids: settings.SANDBOX_UIDS,
    ...(settings.SANDBOX_RUNTIME ? { runtime: settings.SANDBOX_RUNTIME } : {})
  }
}
