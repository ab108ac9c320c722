import { ranMs } from '../../../contract/call-entry.ts'
import type { CallEntry } from '../../../contract/transcript.ts'
import { count, duration } from '../format.ts'

/** One line about a program: what it does now, or what it did and saved. */
export function programWords(program: CallEntry, calls: readonly CallEntry[]): string {
  const waiting = calls.filter(({ decision }) => !decision).length
  const made = count(calls.length, 'call')
  if (!program.result)
    return waiting > 0 ? `Waits for your decision on ${count(waiting, 'call')} of ${made}.` : `Running. ${made} so far.`
  const ms = ranMs(program)
  const took = ms === undefined ? '' : ` in ${duration(ms)}, waiting included`
  const saved = program.result.program?.savedTokens ?? 0
  const tokens = saved > 0 ? ` The model did not read about ${saved.toLocaleString('en')} tokens of results.` : ''
  return `Made ${made}${took}.${tokens}`
}
