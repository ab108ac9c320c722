import type Dockerode from 'dockerode'
import { withDeadline } from '../../../lib/waiting/deadline.ts'
import { type ErrorContext, engineAddress, translateEngineError } from './engine-error.ts'

interface EngineCallOptions {
  /** Completes both "Waited 10 s for the container engine to …" and "The container engine failed to …". */
  to: string
  ms: number
}

/** Runs one call to the engine with a deadline and translates its errors. */
export type EngineCall = <T>(options: EngineCallOptions, work: (abortSignal: AbortSignal) => Promise<T>) => Promise<T>

export function createEngineCall(docker: Dockerode, context: Omit<ErrorContext, 'address'>): EngineCall {
  return async ({ to, ms }, work) => {
    const options = { what: `the container engine to ${to}`, ms, code: 'engine_timeout' }
    return withDeadline(options, async (signal) => {
      try {
        return await work(signal)
      } catch (error) {
        throw translateEngineError(error, to, { ...context, address: await engineAddress(docker) })
      }
    })
  }
}
