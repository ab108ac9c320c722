import type Dockerode from 'dockerode'
import type { ContainerState } from '../../port.ts'
import type { EngineCall } from './engine-call.ts'
import { nullIfMissing } from './engine-error.ts'

const INSPECT_MS = 10_000
const UNPAUSE_MS = 10_000

export async function inspectContainer(
  docker: Dockerode,
  call: EngineCall,
  id: string
): Promise<ContainerState | null> {
  return call({ to: 'inspect a container', ms: INSPECT_MS }, async (abortSignal) => {
    const inspected = await docker.getContainer(id).inspect({ abortSignal }).catch(nullIfMissing)
    if (inspected === null) return null
    const { Running, Paused, OOMKilled, ExitCode } = inspected.State
    return { running: Running, paused: Paused, oomKilled: OOMKilled, exitCode: ExitCode }
  })
}

/** Whether both the container and a command that was started in it are still running. */
export async function isRunning(
  docker: Dockerode,
  call: EngineCall,
  containerId: string,
  exec: Dockerode.Exec
): Promise<boolean> {
  const container = await inspectContainer(docker, call, containerId)
  if (!container?.running) return false
  const started = await call({ to: 'inspect a server', ms: INSPECT_MS }, (abortSignal) =>
    exec.inspect({ abortSignal }).catch(nullIfMissing)
  )
  return started?.Running ?? false
}

/** A container that is not paused is fine. */
export async function unpauseContainer(
  docker: Dockerode,
  call: EngineCall,
  containerId: string,
  ms = UNPAUSE_MS
): Promise<void> {
  await call({ to: 'unpause a container', ms }, async (abortSignal) => {
    try {
      await docker.getContainer(containerId).unpause({ abortSignal })
    } catch (error) {
      if (!/is not paused/i.test(String(error))) throw error
    }
  })
}
