/** The ends of runs that can't be replayed, or that leave calls behind. */
import { createHash } from 'node:crypto'
import type { ProgramCall } from './program-call.ts'
import type { ProgramEnd } from './realms/code-channel.ts'
import { describeCall, type RunState } from './run-log.ts'

/** Abandoned calls that the end of a program names. */
const MAX_NAMED = 10

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

/** A program that fails leaves calls behind that wait for a person: its error names them. */
export function withAbandoned(end: ProgramEnd, { calls }: RunState, open: ReadonlyMap<number, string>): ProgramEnd {
  const asked = [...open].flatMap(([n, state]) => (state === 'asked' ? [n] : []))
  const names = asked.flatMap((n) => calls.get(n)?.call ?? []).map(({ server, tool }) => `${server}.${tool}`)
  if (end.ok || names.length === 0) return end
  const named = names.slice(0, MAX_NAMED).join(', ')
  return { ...end, message: `${end.message}\nNot made, because the program ended: ${named}.` }
}
