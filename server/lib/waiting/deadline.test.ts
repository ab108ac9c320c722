import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { AppError } from '../errors.ts'
import { withDeadline } from './deadline.ts'

const never = () => new Promise<never>(() => {})

describe('a deadline', () => {
  it('gives the result of work that is in time, and lets go of the signal', async () => {
    const { signal } = new AbortController()
    expect(await withDeadline({ what: 'it', ms: 1000, signal }, async () => 7)).toBe(7)
    expect(getEventListeners(signal, 'abort')).toEqual([])
    await expect(
      withDeadline({ what: 'it', ms: 1000 }, async () => {
        throw new Error('own')
      })
    ).rejects.toThrow('own')
  })

  it('ends work that ignores it, and tells work that does not', async () => {
    let told: unknown
    const late = withDeadline({ what: 'the moon', ms: 5, code: 'too_late' }, (signal) => {
      signal.addEventListener('abort', () => {
        told = signal.reason
      })
      return never()
    })
    await expect(late).rejects.toMatchObject({
      kind: 'timeout',
      code: 'too_late',
      message: 'Waited 5 ms for the moon.'
    })
    expect(told).toMatchObject({ code: 'too_late' })
  })

  it('is over for all that work has left half-way, once work has failed', async () => {
    let given: AbortSignal | undefined
    const failing = withDeadline({ what: 'it', ms: 1000 }, async (signal) => {
      given = signal
      throw new Error('own')
    })
    await expect(failing).rejects.toThrow('own')
    expect(given?.aborted).toBe(true)
  })

  it('ends with the caller, for the reason that the caller gave', async () => {
    const controller = new AbortController()
    const work = withDeadline({ what: 'it', ms: 1000, signal: controller.signal }, never)
    controller.abort(new AppError('cancelled', 'stopped', 'Stopped.'))
    await expect(work).rejects.toMatchObject({ code: 'stopped' })
    const { signal } = controller
    await expect(withDeadline({ what: 'it', ms: 1000, signal }, never)).rejects.toMatchObject({ code: 'stopped' })
    await expect(withDeadline({ what: 'it', ms: 1000, signal: AbortSignal.abort() }, never)).rejects.toMatchObject({
      kind: 'cancelled'
    })
  })
})
