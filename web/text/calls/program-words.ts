import { ranMs } from '../../../contract/call-entry.ts'
import type { CallEntry } from '../../../contract/transcript.ts'
import { count, duration } from '../format.ts'

/** One line about a program: what it does now, or what it did and saved. */
export function programWords(program: CallEntry, calls: readonly CallEntry[]): string {
  const waiting = calls.filter(({ decision }) => !decision).length
  const made = count(calls.length, 'call')
  if (!program.result) {
    const waits = waiting === 1 ? 'waits' : 'wait'
    return waiting > 0 ? `${waiting} of ${made} ${waits} for your decision.` : `Running. ${made} so far.`
  }
  const ms = ranMs(program)
  const took = ms === undefined ? '' : ` in ${duration(ms)}, waiting included`
  const saved = program.result.program?.savedTokens ?? 0
  const tokens = saved > 0 ? ` The model did not read about ${saved.toLocaleString('en')} tokens of results.` : ''
  return `Made ${made}${took}.${tokens}`
}

/** The result of a program for a person; the model gets it as JSON. What has another form is shown as it is. */
export function programOutput(text: string): string {
  const { error, value, cut, logs } = fieldsOf(text)
  const parts: unknown[] = []
  if (typeof error === 'object' && error !== null && 'message' in error)
    parts.push('line' in error ? `Line ${error.line}: ${error.message}` : error.message)
  else if (value !== undefined) parts.push(typeof value === 'string' ? value : JSON.stringify(value, null, 2))
  else return text
  if (typeof cut === 'string') parts.push(cut)
  if (typeof logs === 'string') parts.push(`Printed:\n${logs}`)
  return parts.join('\n\n')
}

function fieldsOf(text: string): Record<string, unknown> {
  try {
    const fields: unknown = JSON.parse(text)
    return typeof fields === 'object' && fields !== null ? { ...fields } : {}
  } catch {
    return {}
  }
}
