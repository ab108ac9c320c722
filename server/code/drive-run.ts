import { isAppError } from '../lib/errors.ts'
import { NEVER_READY } from './realms/code-channel.ts'
import { type AttemptEnd, type AttemptOptions, RunAttempt } from './run-attempt.ts'

const MAX_ATTEMPTS = 3

/**
 * Drives a run to its end. If a container is lost, tries again in another one, but not for ever. Throws if no realm could be
 * opened, or became ready: that says nothing about the program.
 */
export async function driveRun(
  options: AttemptOptions,
  signal: AbortSignal
): Promise<Exclude<AttemptEnd, 'realm_lost'>> {
  for (let attempt = 1; ; attempt++) {
    const end = await new RunAttempt(options).run(signal).catch((error: unknown) => {
      if (attempt < MAX_ATTEMPTS && isAppError(error, NEVER_READY)) return 'realm_lost' as const
      throw error
    })
    if (end !== 'realm_lost') return end
    if (signal.aborted) return 'stopped'
    if (attempt < MAX_ATTEMPTS) continue
    const message = 'The sandbox of the program ended again and again.'
    await options.log.end({ ok: false, code: 'code_realm_ended', message })
    return 'ended'
  }
}
