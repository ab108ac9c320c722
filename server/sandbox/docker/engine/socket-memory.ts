import { accessSync, constants } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type Dockerode from 'dockerode'
import type { EngineCall } from './engine-call.ts'

const HIERARCHY = '/sys/fs/cgroup/memory'
const LIMIT_FILE = 'memory.kmem.tcp.limit_in_bytes'
/** Socket buffers may take this part of a container's memory limit, in addition to it. */
const SHARE = 1 / 8
const LOOK_MS = 10_000

/** Whether this process can limit socket buffers in containers on a machine with cgroup v1. */
export function canLimitSocketMemory(): boolean {
  try {
    accessSync(join(HIERARCHY, LIMIT_FILE), constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Limits the buffers of TCP and UDP sockets in a container that was just started. cgroup v1 does not count them against the
 * container's memory, and the engine has no option for them. cgroup v2 counts them, so there is nothing to do.
 */
export async function limitSocketMemory(docker: Dockerode, call: EngineCall, id: string): Promise<void> {
  if (!canLimitSocketMemory()) return
  const { State, HostConfig } = await call({ to: 'inspect a container', ms: LOOK_MS }, (abortSignal) =>
    docker.getContainer(id).inspect({ abortSignal })
  )
  const cgroups = await readFile(`/proc/${State.Pid}/cgroup`, 'utf8').catch(() => '')
  const path = /^\d+:memory:(.+)$/m.exec(cgroups)?.[1]
  // The engine may run on another machine, where the process id means another process.
  if (!path?.includes(id)) return
  const bytes = Math.floor((HostConfig.Memory ?? 0) * SHARE)
  await writeFile(join(HIERARCHY, path, LIMIT_FILE), String(bytes)).catch(() => {})
}
