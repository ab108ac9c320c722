/** The outcome of a run for a model, which pays for every character. */
import { headOf, tailOf } from '../lib/cut-text.ts'
import type { RunState } from './run-log.ts'

const MAX_VALUE_CHARS = 32_000
const MAX_LOG_CHARS = 16_000

/** The value of a program that ended well, or its error. */
export function outcomeOfRun({ end }: Pick<RunState, 'end'>): Record<string, unknown> {
  if (!end) return { error: { code: 'internal', message: 'The program has no end.' } }
  if (!end.ok) {
    const line = 'line' in end && end.line ? { line: end.line } : {}
    return { error: { code: end.code, message: end.message, ...line } }
  }
  const text = JSON.stringify(end.value) ?? 'null'
  if (text.length <= MAX_VALUE_CHARS) return { value: end.value }
  const cut = `The value has ${text.length} characters; this is its beginning. Return less.`
  return { value: headOf(text, MAX_VALUE_CHARS), cut }
}

/** The number of calls that a program has made, and the end of what it has printed. */
export function workOfRun({ calls, logs }: Pick<RunState, 'calls' | 'logs'>): Record<string, unknown> {
  const made = [...calls.values()].filter(({ call }) => call.kind === 'tool').length
  const text = logs.join('\n')
  const cut = text.length > MAX_LOG_CHARS ? `[${text.length - MAX_LOG_CHARS} characters cut]\n` : ''
  return { calls: made, ...(text === '' ? {} : { logs: `${cut}${tailOf(text, MAX_LOG_CHARS)}` }) }
}
