/** The ends of runs that can't be replayed. */
import type { ProgramEnd } from './code-channel.ts'
import type { ProgramCall } from './program-call.ts'
import { describeCall } from './run-log.ts'

export function departed(recorded: ProgramCall, made: ProgramCall | undefined): ProgramEnd {
  const now = made ? `made ${describeCall(made).slice(0, 500)} on line ${made.line}` : 'ended before it'
  const message = `The program departed from its log at call ${recorded.n}: the log has ${describeCall(recorded).slice(0, 500)} on line ${recorded.line}, and the program now ${now}. No call was repeated.`
  return { ok: false, code: 'code_departed', message, line: made?.line }
}

export function changedRuntime(before: string, now: string): ProgramEnd {
  const message = `The run began with version ${before} of the runtime, and this one is ${now}. Start the program again.`
  return { ok: false, code: 'code_runtime_changed', message }
}
