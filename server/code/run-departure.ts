/** The ends of runs that can't be replayed. */
import { createHash } from 'node:crypto'
import type { ProgramCall } from './program-call.ts'
import type { ProgramEnd } from './realms/code-channel.ts'
import { describeCall, type RunState } from './run-log.ts'

export function departed(recorded: ProgramCall, made: ProgramCall | undefined): ProgramEnd {
  const now = made ? `made ${describeCall(made).slice(0, 500)} on line ${made.line}` : 'ended before it'
  const message = `The program departed from its log at call ${recorded.n}: the log has ${describeCall(recorded).slice(0, 500)} on line ${recorded.line}, and the program now ${now}. No call was repeated.`
  return { ok: false, code: 'code_departed', message, line: made?.line }
}

export function programHash(code: string): string {
  return createHash('sha256').update(code).digest('hex')
}

/** Only the same program on the same runtime makes the same calls again. */
export function notReplayable({ program, runtime: before = '' }: RunState, now: string): ProgramEnd | undefined {
  if (program && programHash(program.code) !== program.hash) {
    const message = 'The stored program is not the one that was started. Start the program again.'
    return { ok: false, code: 'code_changed', message }
  }
  if (before === now) return undefined
  const message = `The run began with version ${before} of the runtime, and this one is ${now}. Start the program again.`
  return { ok: false, code: 'code_runtime_changed', message }
}
