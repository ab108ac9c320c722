/** The outcome of a run for a model, which pays for every character. */
import { headOf, tailOf } from '../lib/cut-text.ts'
import { MAX_LOG_CHARS, MAX_VALUE_CHARS, wholeOutcome } from './long-outcome.ts'
import { describeCall, type RunState } from './run-log.ts'

const MAX_NAMED = 10
const MAX_NAME_CHARS = 300

/** Tells a model how to get the rest of a text that is too long for an answer. */
export type ReadOn = (place: { from: number; of?: 'logs' }) => string

/** The value of a program that ended well, or its error. */
export function outcomeOfRun(
  { end, calls, logs }: Pick<RunState, 'end' | 'calls' | 'logs'>,
  readOn: ReadOn = () => 'Return less.'
): Record<string, unknown> {
  if (!end) return { error: { code: 'internal', message: 'The program has no end.' } }
  if (!end.ok) {
    const line = 'line' in end && end.line ? { line: end.line } : {}
    return { error: { code: end.code, message: [end.message, ...leftBehind({ calls })].join('\n'), ...line } }
  }
  const { value: text } = wholeOutcome({ end, logs })
  if (text.length <= MAX_VALUE_CHARS) return { value: end.value }
  const value = headOf(text, MAX_VALUE_CHARS)
  const cut = `As JSON, the value has ${text.length} characters; this is its beginning. ${readOn({ from: value.length })}`
  return { value, cut }
}

/**
 * The calls that had no answer when the program ended. Of those that had left, nobody knows whether they took effect; whoever starts
 * the program again must know them. Those that only read are not in the log.
 */
export function leftBehind({ calls }: Pick<RunState, 'calls'>): string[] {
  const open = [...calls.values()].filter(({ call, done }) => call.kind === 'tool' && !done)
  const unknown = open
    .filter(({ starts }) => starts > 0)
    .map(({ call }) => `${headOf(describeCall(call), MAX_NAME_CHARS)} on line ${call.line}`)
  const notMade = open
    .filter(({ starts, asked, decisions }) => starts === 0 && (asked !== undefined || decisions.length > 0))
    .map(({ call: { server, tool } }) => `${server}.${tool}`)
  return [
    ...sentence('Outcome unknown, because the program ended', unknown),
    ...sentence('Not made, because the program ended', notMade)
  ]
}

function sentence(what: string, names: string[]): string[] {
  if (names.length === 0) return []
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  return [`${what}: ${names.slice(0, MAX_NAMED).join(', ')}${more}.`]
}

/** The number of tools that a program has called. */
export function madeCalls({ calls }: Pick<RunState, 'calls'>): number {
  return [...calls.values()].filter(({ call }) => call.kind === 'tool').length
}

/** The number of calls that a program has made, and the end of what it has printed. */
export function workOfRun({ calls, logs }: Pick<RunState, 'calls' | 'logs'>, readOn: ReadOn): Record<string, unknown> {
  const text = logs.join('\n')
  const left = text.length - MAX_LOG_CHARS
  const cut = left > 0 ? `[${left} characters cut. ${readOn({ from: 0, of: 'logs' })}]\n` : ''
  return { calls: madeCalls({ calls }), ...(text === '' ? {} : { logs: `${cut}${tailOf(text, MAX_LOG_CHARS)}` }) }
}
