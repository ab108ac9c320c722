import type Dockerode from 'dockerode'
import type { EngineCall } from './engine-call.ts'
import { engineStatus } from './engine-error.ts'

const REMOVE_MS = 30_000

/** Removes a container in any state. Returns false if it is already gone or another call removes it. */
export async function removeContainer(docker: Dockerode, call: EngineCall, idOrName: string): Promise<boolean> {
  return call({ to: 'remove a container', ms: REMOVE_MS }, async (abortSignal) => {
    try {
      await docker.getContainer(idOrName).remove({ force: true, v: true, abortSignal })
      return true
    } catch (error) {
      const status = engineStatus(error)
      if (status !== 404 && status !== 409) throw error
      return false
    }
  })
}
