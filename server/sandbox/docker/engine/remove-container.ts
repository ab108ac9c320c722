import type Dockerode from 'dockerode'
import type { EngineCall } from './engine-call.ts'
import { engineStatus } from './engine-error.ts'

const REMOVE_MS = 30_000

/** Removes a container in any state. It is not an error if the container is already gone. */
export async function removeContainer(docker: Dockerode, call: EngineCall, idOrName: string): Promise<void> {
  await call({ to: 'remove a container', ms: REMOVE_MS }, async (abortSignal) => {
    try {
      await docker.getContainer(idOrName).remove({ force: true, v: true, abortSignal })
    } catch (error) {
      // The container is gone, or another remove is in progress.
      const status = engineStatus(error)
      if (status !== 404 && status !== 409) throw error
    }
  })
}
